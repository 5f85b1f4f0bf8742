-- One window on one counter.
-- KEYS 1 counter   ARGV 1 cost, 2 limit, 3 window, 4 TTL in ms
-- reply: the piece's s, one integer; refused if negative
local call,k,ARGV=redis.call,KEYS[1],ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local x,y,z=ARGV[1]+0,ARGV[2]+0,ARGV[3]+0
local s,set,f
local v=call('GET',k)
-- Sliding window as one number: (window mod 8)·2^50 + previous count·2^25 + current count.
-- in:  v stored value or false, us store time, x cost, y limit, z window in ms
-- out: s remaining·2^28 + ticks to the window's end, or -1-(remaining·2^28 + ticks until it can pass, 0: never);
--      set value to store, nil: add the cost to the stored one
local u=1000
if z>86400000 then u=1000000 z=z/1000 end
local now=(us-us%u)/u
local e=now%z
local w,cur,prev=(now-e)/z%8,0,0
if v then
 v=v+0
 cur=v%33554432
 local o=(v-cur)/33554432
 prev=o%33554432
 o=(w-(o-prev)/33554432)%8
 if o>3 then e=0
 elseif o>1 then
  prev=0 cur=0
  set=true
 elseif o==1 then
  prev=cur cur=0
  set=true
 end
else
 set=true
end
local room=(y-cur-x)*z-prev*(z-e)
if room>=0 then
 s=(room-room%z)/z*268435456+z-e
 if set then set=(w*33554432+prev)*33554432+x end
else
 local wait=0
 if cur+x<=y then wait=(y-cur-x)*z/prev wait=z-(wait-wait%1)-e
 elseif x<=y then wait=(y-x)*z/cur wait=z-e+z-(wait-wait%1) end
 room=math.max(room+x*z,0)
 s=-1-((room-room%z)/z*268435456+wait)
end
if s>=0 then
 if set then call('SET',k,set,'PX',ARGV[4]) else call('INCRBY',k,ARGV[1]) end
end
return s
