-- Planning takes five times as long as running, so one plan is kept; and it is by index whatever the tables held when it was made, because
-- an import can make them large faster than PostgreSQL notices.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('enable_material', 'off', true)
