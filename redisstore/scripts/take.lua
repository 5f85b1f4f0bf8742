-- Groups of limits, each taken whole or not at all.
-- KEYS counters, group after group   ARGV 1 the groups, two characters each: number of limits, number of shadow limits
-- among them, which stand last and refuse nothing; then five per key: algorithm, cost, limit, window, TTL in ms (of a
-- log, the id of its entries)
-- reply: store time in µs, then one integer per key: the piece's s; where it passed in a refused
-- group, s had nothing been charged
local call,KEYS,ARGV=redis.call,KEYS,ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local reply,sets,weights={us},{},{}
local spec=ARGV[1]
local i=0
for g=1,#spec,2 do
 local first,n=i+1,spec:byte(g)-48
 local hard=n-(spec:byte(g+1)-48)
 local passed=true
 for j=1,n do
  i=i+1
  local k,a=KEYS[i],i*5-3
  local kind,x,y,z=ARGV[a],ARGV[a+1]+0,ARGV[a+2]+0,ARGV[a+3]+0
  local s,set
  local f=1
  --[[check]]
  reply[i+1]=s
  sets[i]=set
  weights[i]=f
  if s<0 and j<=hard then passed=false end
 end
 for j=first,i do
  if reply[j+1]>=0 then
   if passed then
    local k,a=KEYS[j],j*5-3
    if ARGV[a]=='l' then
     local x,z,id=ARGV[a+1]+0,ARGV[a+3]+0,ARGV[a+4]
     --[[sliding_log_write]]
    elseif sets[j] then call('SET',k,sets[j],'PX',ARGV[a+4])
    else call('INCRBY',k,ARGV[a+1]) end
   else reply[j+1]=reply[j+1]+ARGV[j*5-2]*weights[j] end
  end
 end
end
return reply
