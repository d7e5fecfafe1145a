# Every command that is understood.
version
debug 1
usage "what this is for"
set $n=2
enable lathist
eventgen rate=0
define file name=f,path=/tmp,prealloc,size=4k,cached=true
define fileset name=legacy,path=/tmp,entries=5,dirwidth=3,size=4k,filesizegamma=1500,prealloc,cached=false
define process name=p { thread name=t { flowop statfile name=s,filename=f flowop delay name=d,value=1 } }
create files
create fileset
create processes
list fileset
list flowop
stats clear
sleep 1
sleep $n
set mode quit timeout
psrun -1 4
quit
