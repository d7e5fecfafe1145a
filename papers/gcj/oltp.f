# OLTP, of the four server workloads of the F2FS paper (FAST 2015): many clients read, ten writers and a log writer write synchronously. Threads
# and sizes are those of Filebench's personality of this name, with blocks of 8 KiB. The run ends when a writer has written so many.
set $clients=50
set $writers=10
set $filesize=10m
set $rounds=10000

define fileset name=tables,path=/db,entries=10,size=$filesize,dirwidth=1024,prealloc=100
define file name=redo,path=/db,size=$filesize,prealloc

define process name=logwriter
{
  thread name=logwriter
  {
    flowop aiowrite name=log-write,filename=redo,iosize=256k,random,dsync
    flowop aiowait name=log-wait
    flowop semblock name=log-block,value=800,highwater=250
  }
}

define process name=writer,instances=$writers
{
  thread name=writer
  {
    flowop aiowrite name=write,filesetname=tables,iosize=8k,random,iters=100,opennext,dsync
    flowop hog name=write-work,value=10000
    flowop semblock name=write-block,value=250,highwater=500
    flowop aiowait name=write-wait
    flowop finishoncount name=end,value=$rounds,target=write
  }
}

define process name=shadow,instances=$clients
{
  thread name=shadow
  {
    flowop read name=read,filesetname=tables,iosize=2k,random,opennext
    flowop hog name=work,value=200000
    flowop sempost name=post-log,value=1,target=log-block,blocking
    flowop sempost name=post-writers,value=1,target=write-block,blocking
  }
}
set mode quit firstdone
run
