-- Groups of limits, each taken whole or not at all.
-- KEYS counters, group after group
-- ARGV 1 the groups, each as characters that count from '0': number of limits, number of shadow limits among them, which
-- stand last and refuse nothing, then for each limit its set of arguments; after that the sets, five each, which charges
-- share: algorithm, cost, limit, window, TTL in ms (of a log, the id of its entries)
-- reply: store time in µs, then one integer per key: the piece's s; where it passed in a refused
-- group, s had nothing been charged
local call,KEYS,ARGV=redis.call,KEYS,ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local reply,sets,weights={us},{},{}
--[[sets]]
local at={}
local i,g=0,1
while g<#spec do
 local n,shadows=spec:byte(g,g+1)
 local first,hard=i+1,n-shadows
 n=n-48
 g=g+1
 local passed=true
 for j=1,n do
  i=i+1
  local k,a=KEYS[i],spec:byte(g+j)*5-238
  local kind,x,y,z=ARGV[a],costs[a],limits[a],windows[a]
  local s,set
  local f=1
  --[[check]]
  reply[i+1]=s
  sets[i]=set
  weights[i]=f
  at[i]=a
  if s<0 and j<=hard then passed=false end
 end
 g=g+n+1
 for j=first,i do
  if reply[j+1]>=0 then
   if passed then
    local k,a=KEYS[j],at[j]
    if ARGV[a]=='l' then
     local x,z,id=costs[a],windows[a],ARGV[a+4]
     --[[sliding_log_write]]
    elseif sets[j] then call('SET',k,sets[j],'PX',ARGV[a+4])
    else call('INCRBY',k,ARGV[a+1]) end
   else reply[j+1]=reply[j+1]+costs[at[j]]*weights[j] end
  end
 end
end
return reply
