-- Fixed window as one number: (window mod 8)·2^50 + count. The number, not expiry, marks the window's edge.
-- in:  v stored value or false, us store time, x cost, y limit, z window in ms
-- out: s remaining·2^28 + ticks to the window's end (limits of 2^25 and more: remaining alone), -1-that when refused;
--      set value to store, nil: add the cost to the stored one; f what a unit weighs in s
local u=1000
if z>86400000 then u=1000000 z=z/1000 end
local now=(us-us%u)/u
local e=now%z
local w,n=(now-e)/z%8,0
if v then
 v=v+0
 n=v%1125899906842624
 local o=(w-(v-n)/1125899906842624)%8
 if o>3 then e=0
 elseif o>0 then
  n=0
  set=true --set
 end
else --set
 set=true --set
end
s=y-n-x
local refused=s<0
if refused then s=math.max(y-n,0)
elseif set then set=w*1125899906842624+x --set
end
if y<33554432 then f=268435456 s=s*f+z-e end
if refused then s=-1-s end
