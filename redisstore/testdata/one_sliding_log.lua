-- One limit on one sliding log.
-- KEYS 1 log   ARGV 1 cost, 2 limit, 3 window, 4 id of its entries
-- reply: the piece's s, one integer; refused if negative
local call,k=redis.call,KEYS[1]
local t=call('TIME')
local us=t[1]*1000000+t[2]
local x,y,z,id=ARGV[1]+0,ARGV[2]+0,ARGV[3]+0,ARGV[4]
local s
-- Sliding log as a sorted set: one member per admitted unit, scored with its time. Not a counter: it reads for itself.
-- in:  k key, us store time, x cost, y limit, z window in µs
-- out: s remaining, or -1-(remaining·2^36 + ms until it can pass, 0: never)
call('ZREMRANGEBYSCORE',k,'-inf',us-z)
local room=y-call('ZCARD',k)
s=room-x
if s<0 then
 local wait=0
 if x<=y then
  local last=call('ZRANGE',k,-s-1,-s-1,'WITHSCORES')
  wait=last[2]+z-us+999
  wait=(wait-wait%1000)/1000
 end
 s=-1-(math.max(room,0)*68719476736+wait)
end
if s>=0 then
 -- Adds the x units of one charge to a sliding log; their members carry its id, so that they can be given back.
 for j=1,x do call('ZADD',k,us,id..'-'..j) end
 call('PEXPIRE',k,z/1000+1000)
end
return s
