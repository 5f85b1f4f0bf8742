-- What take would answer, without charging. KEYS and ARGV are as there, but ARGV 1 is only the set of arguments of each
-- limit: groups do not matter where nothing is taken.
-- reply: store time in µs, then one integer per key: the piece's s, had nothing been charged
local call,KEYS,ARGV=redis.call,KEYS,ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local reply={us}
local spec,costs,limits,windows=ARGV[1],{},{},{}
for a=2,#ARGV,5 do
 costs[a]=ARGV[a+1]+0
 limits[a]=ARGV[a+2]+0
 windows[a]=ARGV[a+3]+0
end
for i=1,#KEYS do
 local k,a=KEYS[i],spec:byte(i)*5-238
 local kind,x,y,z=ARGV[a],costs[a],limits[a],windows[a]
 local s
 local f=1
 if kind=='l' then
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
 else
  local v=call('GET',k)
  if kind=='b' then
   -- Token bucket as one number: the time at which it is full again (TAT), in ticks on a ring of 2^53.
   -- in:  v stored value or false, us store time, x cost in ticks, y capacity in ticks
   -- out: s room left in ticks, or minus the wait; set value to store
   -- The text stands twice, with 8192 per µs fine (8192, stored as it is) and long (8, stored as -1-value); the other
   -- length is told by the sign. All products are with powers of two, hence exact although they exceed 2^53.
   local m,d=us*8192%9007199254740992,0
   if v then
    v=v+0
    local n,f=m,false
    if v<0 then v=-1-v n=us*8%9007199254740992 f=true end
    d=v-n
    if d<-4503599627370496 then d=d+9007199254740992 elseif d>4503599627370496 then d=0 end
    if f then d=math.min(d*1024,6755399441055744) end
    if d<0 then d=0 end
   end
   s=y-x-d
  elseif kind=='s' then
   f=268435456
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
    elseif o==1 then
     prev=cur cur=0
    end
   end
   local room=(y-cur-x)*z-prev*(z-e)
   if room>=0 then
    s=(room-room%z)/z*268435456+z-e
   else
    local wait=0
    if cur+x<=y then wait=(y-cur-x)*z/prev wait=z-(wait-wait%1)-e
    elseif x<=y then wait=(y-x)*z/cur wait=z-e+z-(wait-wait%1) end
    room=math.max(room+x*z,0)
    s=-1-((room-room%z)/z*268435456+wait)
   end
  elseif kind=='f' then
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
    end
   end
   s=y-n-x
   local refused=s<0
   if refused then s=math.max(y-n,0)
   end
   if y<33554432 then f=268435456 s=s*f+z-e end
   if refused then s=-1-s end
  else
   -- Token bucket as one number: the time at which it is full again (TAT), in ticks on a ring of 2^53.
   -- in:  v stored value or false, us store time, x cost in ticks, y capacity in ticks
   -- out: s room left in ticks, or minus the wait; set value to store
   -- The text stands twice, with 8 per µs fine (8192, stored as it is) and long (8, stored as -1-value); the other
   -- length is told by the sign. All products are with powers of two, hence exact although they exceed 2^53.
   local m,d=us*8%9007199254740992,0
   if v then
    v=-1-v
    local n,f=m,false
    if v<0 then v=-1-v n=us*8192%9007199254740992 f=true end
    d=v-n
    if d<-4503599627370496 then d=d+9007199254740992 elseif d>4503599627370496 then d=0 end
    if f then d=(d+1023-(d+1023)%1024)/1024 end
    if d<0 then d=0 end
   end
   s=y-x-d
  end
 end
 if s>=0 then s=s+x*f end
 reply[i+1]=s
end
return reply
