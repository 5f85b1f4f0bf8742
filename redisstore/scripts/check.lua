if kind=='l' then
 --[[sliding_log]]
else
 local v=call('GET',k)
 if kind=='b' then
  --[[token_bucket]]
 elseif kind=='s' then
  f=268435456
  --[[sliding_window]]
 elseif kind=='f' then
  --[[fixed_window]]
 else
  --[[long_bucket]]
 end
end
