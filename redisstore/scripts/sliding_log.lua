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
