-- Token bucket as one number: the time at which it is full again (TAT), in ticks on a ring of 2^53.
-- in:  v stored value or false, us store time, x cost in ticks, y capacity in ticks
-- out: s room left in ticks, or minus the wait; set value to store
-- The text stands twice, with {ticks} per µs fine (8192, stored as it is) and long (8, stored as -1-value); the other
-- length is told by the sign. All products are with powers of two, hence exact although they exceed 2^53.
local m,d=us*{ticks}%9007199254740992,0
if v then
 v={decode}
 local n,f=m,false
 if v<0 then v=-1-v n=us*{other}%9007199254740992 f=true end
 d=v-n
 if d<-4503599627370496 then d=d+9007199254740992 elseif d>4503599627370496 then d=0 end
 if f then {convert} end
 if d<0 then d=0 end
end
s=y-x-d
set=m-9007199254740992+d+x --set
if set<0 then set=set+9007199254740992 end --set
{encode} --set
