local spec,costs,limits,windows=ARGV[1],{},{},{}
for a=2,#ARGV,5 do
 costs[a]=ARGV[a+1]+0
 limits[a]=ARGV[a+2]+0
 windows[a]=ARGV[a+3]+0
end
