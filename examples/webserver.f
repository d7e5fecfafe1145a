# A web server: a request is a file that is opened, read whole and closed; ten of them share a line in the
# one log that all threads append to. The cache holds the pages after a while, and the log is what is
# left of the I/O.
#
#   nandscape run examples/webserver.f --stack ext4-pblk
#   nandscape run examples/webserver.f --stack ext4-pblk --set '$think=0'    no work beside the I/O
set $dir=/srv/www
set $pages=1000
set $threads=100
set $seconds=1
# What a request takes of a core besides, in nanoseconds.
set $think=50000
set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)

define fileset name=pages,path=$dir,entries=$pages,size=$size,dirwidth=20,prealloc=100,readonly
define file name=log,path=$dir,size=16k,prealloc

# A request for a page.
define flowop name=request
{
  flowop openfile name=open,filesetname=pages,fd=1
  flowop readwholefile name=read,fd=1,iosize=1m
  flowop closefile name=close,fd=1
  flowop hog name=think,value=$think
}

define process name=webserver
{
  thread name=worker,instances=$threads
  {
    flowop request name=get,iters=10
    flowop appendfilerand name=log,filename=log,fd=2,iosize=16k
  }
}
run $seconds
