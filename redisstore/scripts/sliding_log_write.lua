-- Adds the x units of one charge to a sliding log; their members carry its id, so that they can be given back.
for j=1,x do call('ZADD',k,us,id..'-'..j) end
call('PEXPIRE',k,z/1000+1000)
