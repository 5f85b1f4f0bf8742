-- What take would answer, without charging: KEYS and ARGV as there.
-- reply: store time in µs, then one integer per key: the piece's s, had nothing been charged
local call,KEYS,ARGV=redis.call,KEYS,ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local reply={us}
for i=1,#KEYS do
 local k,a=KEYS[i],i*5-3
 local kind,x,y,z=ARGV[a],ARGV[a+1]+0,ARGV[a+2]+0,ARGV[a+3]+0
 local s,set
 local f=1
 --[[check]]
 if s>=0 then s=s+x*f end
 reply[i+1]=s
end
return reply
