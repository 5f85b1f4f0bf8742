-- One window on one counter.
-- KEYS 1 counter   ARGV 1 cost, 2 limit, 3 window, 4 TTL in ms
-- reply: the piece's s, one integer; refused if negative
local call,k,ARGV=redis.call,KEYS[1],ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local x,y,z=ARGV[1]+0,ARGV[2]+0,ARGV[3]+0
local s,set,f
local v=call('GET',k)
--[[piece]]
if s>=0 then
 if set then call('SET',k,set,'PX',ARGV[4]) else call('INCRBY',k,ARGV[1]) end
end
return s
