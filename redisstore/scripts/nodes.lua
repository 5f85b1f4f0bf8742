-- Counts the nodes that share this Redis: each writes its name now and then, and those not heard of for long are dropped.
-- KEYS the set of nodes   ARGV name, ms after which a silent node is dropped, 1 to stay or 0 to leave
-- reply: nodes left
local t=redis.call('TIME')
local us=t[1]*1000000+t[2]
if ARGV[3]=='1' then
 redis.call('ZADD',KEYS[1],us,ARGV[1])
else
 redis.call('ZREM',KEYS[1],ARGV[1])
end
redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',us-ARGV[2]*1000)
redis.call('PEXPIRE',KEYS[1],ARGV[2])
return redis.call('ZCARD',KEYS[1])
