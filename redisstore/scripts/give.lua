-- Gives back what earlier takes charged. Never creates a key, never shortens or lengthens its life.
-- KEYS counters   ARGV five per key: algorithm, cost, window, store time of the take in µs, id of a log's entries
-- reply: one integer per key: how much of the cost came back
local call,KEYS,ARGV=redis.call,KEYS,ARGV
local t=call('TIME')
local us=t[1]*1000000+t[2]
local reply={}
for i=1,#KEYS do
 local k,a=KEYS[i],i*5-4
 local kind,x,z,us0=ARGV[a],ARGV[a+1]+0,ARGV[a+2]+0,ARGV[a+3]+0
 local back=0
 if kind=='l' then
  for j=1,x do back=back+call('ZREM',k,ARGV[a+4]..'-'..j) end
 else
  local v=call('GET',k)
  if v and us>=us0 then
   v=v+0
   if kind=='b' or kind=='B' then
    local ticks=8192
    if kind=='B' then ticks=8 v=-1-v end
    if v>=0 then
     local m=us*ticks%9007199254740992
     local d=v-m
     if d<-4503599627370496 then d=d+9007199254740992 elseif d>4503599627370496 then d=0 end
     back=math.min(x-(us-us0)*ticks,d)
     if back>0 then
      v=m-9007199254740992+d-back
      if v<0 then v=v+9007199254740992 end
      if kind=='B' then v=-1-v end
      call('SET',k,v,'KEEPTTL')
     else back=0 end
    end
   else
    local u=z*1000
    local w,w0=(us-us%u)/u,(us0-us0%u)/u
    if kind=='f' then
     local n=v%1125899906842624
     if w==w0 and (v-n)/1125899906842624==w%8 then
      back=math.min(x,n)
      call('DECRBY',k,back)
     end
    elseif w-w0<=1 then
     local cur=v%33554432
     local prev=(v-cur)/33554432
     local o=prev
     prev=prev%33554432
     o=(o-prev)/33554432
     if o==w0%8 then
      back=math.min(x,cur)
      call('DECRBY',k,back)
     elseif o==w%8 then
      back=math.min(x,prev)
      call('DECRBY',k,back*33554432)
     end
    end
   end
  end
 end
 reply[i]=back
end
return reply
