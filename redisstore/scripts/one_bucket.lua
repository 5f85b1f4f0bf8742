-- One token bucket.
-- KEYS 1 counter   ARGV 1 cost, 2 capacity, 3 unused, 4 TTL in ms
-- reply: the piece's s, one integer; refused if negative
local call,k,ARGV=redis.call,KEYS[1],ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local x,y=ARGV[1]+0,ARGV[2]+0
local s,set
local v=call('GET',k)
--[[piece]]
-- Never INCRBY: after a change of limit the old, perhaps shorter time to live would stay.
if s>=0 then call('SET',k,set,'PX',ARGV[4]) end
return s
