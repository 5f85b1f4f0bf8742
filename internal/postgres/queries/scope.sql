SELECT set_config('sluice.reads', $1, true), set_config('sluice.operates', $2, true), set_config('sluice.administers', $3, true)
