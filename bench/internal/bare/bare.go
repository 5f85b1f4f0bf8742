// Package bare has the cheapest scripts known for one limit, written for bare loops alone: whole microseconds, no change of limit in
// mid-flight, no answer beyond a number. They are what a program would pay without sluice, and less than it should use:
// the bucket admits too much after its capacity is raised, and neither tells when to come back.
package bare

// Bucket is a token bucket. KEYS 1 counter; ARGV 1 cost in µs, 2 capacity in µs, 3 TTL in ms. Reply: room left in µs; refused if negative.
const Bucket = `
local call,k,a=redis.call,KEYS[1],ARGV
local t=call('TIME')
local now=t[1]*1000000+t[2]
local cost,cap=a[1]+0,a[2]+0
local tat=call('GET',k)
if tat then
 tat=tat+0
 if tat>now then
  local room=now+cap-tat-cost
  if room<0 then return room end
  if tat%cap+cost<cap then call('INCRBY',k,a[1]) else call('SET',k,tat+cost,'PX',a[3]) end
  return room
 end
end
call('SET',k,now+cost,'PX',a[3])
return cap-cost`

// Window is a sliding window. KEYS 1 counter; ARGV 1 limit, 2 window in ms, 3 cost. Reply: room left, whole; -1 refused.
const Window = `
local call,k,a=redis.call,KEYS[1],ARGV
local t=call('TIME')
local at=(t[1]*1000+t[2]/1000)/a[2]
local f=at%1
local n=(at-f)%32
local v=call('GET',k)
local cur,prev=0,0
if v then
 v=v+0
 cur=v%16777216
 v=(v-cur)/16777216
 prev=v%16777216
 local o=(v-prev)/16777216
 if o==n then
  local room=a[1]-prev*(1-f)-cur-a[3]
  if room<0 then return -1 end
  call('INCRBY',k,a[3])
  return room
 end
 if (o+1)%32==n then prev=cur else prev=0 end
end
local room=a[1]-prev*(1-f)-a[3]
if room<0 then return -1 end
call('SET',k,(n*16777216+prev)*16777216+a[3],'PX',a[2]*2)
return room`
