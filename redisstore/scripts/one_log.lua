-- One limit on one sliding log.
-- KEYS 1 log   ARGV 1 cost, 2 limit, 3 window, 4 id of its entries
-- reply: the piece's s, one integer; refused if negative
local call,k=redis.call,KEYS[1]
local t=call('TIME')
local us=t[1]*1000000+t[2]
local x,y,z,id=ARGV[1]+0,ARGV[2]+0,ARGV[3]+0,ARGV[4]
local s
--[[sliding_log]]
if s>=0 then
 --[[sliding_log_write]]
end
return s
