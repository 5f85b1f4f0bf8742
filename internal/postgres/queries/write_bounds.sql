-- Writers wait for each other: one that hangs must not hold up the others for long.
SELECT set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '4s', true)
