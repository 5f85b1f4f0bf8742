-- Forgets counters.
-- KEYS counters   reply: how many there were
return redis.call('DEL',unpack(KEYS))
