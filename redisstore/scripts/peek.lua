-- What take would answer, without charging. KEYS and ARGV are as there, but ARGV 1 is only the set of arguments of each
-- limit: groups do not matter where nothing is taken.
-- reply: store time in µs, then one integer per key: the piece's s, had nothing been charged
local call,KEYS,ARGV=redis.call,KEYS,ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local reply={us}
--[[sets]]
for i=1,#KEYS do
 local k,a=KEYS[i],spec:byte(i)*5-238
 local kind,x,y,z=ARGV[a],costs[a],limits[a],windows[a]
 local s
 local f=1
 --[[check]]
 if s>=0 then s=s+x*f end
 reply[i+1]=s
end
return reply
