-- One token bucket.
-- KEYS 1 counter   ARGV 1 cost, 2 capacity, 3 unused, 4 TTL in ms
-- reply: the piece's s, one integer; refused if negative
local call,k,ARGV=redis.call,KEYS[1],ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local x,y=ARGV[1]+0,ARGV[2]+0
local s,set
local v=call('GET',k)
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
set=m-9007199254740992+d+x
if set<0 then set=set+9007199254740992 end
-- Never INCRBY: after a change of limit the old, perhaps shorter time to live would stay.
if s>=0 then call('SET',k,set,'PX',ARGV[4]) end
return s
