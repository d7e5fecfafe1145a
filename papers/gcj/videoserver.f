# Videoserver, of the four server workloads of the F2FS paper (FAST 2015): one thread replaces large files, viewers read others in order. The
# time is that of a fixed number of new videos.
set $videosize=16m
set $rounds=64
set $viewers=8

define fileset name=watched,path=/video,entries=8,size=$videosize,dirwidth=4,prealloc
define fileset name=archive,path=/video,entries=16,size=$videosize,dirwidth=20,prealloc=50

define process name=ingest
{
  thread name=ingest
  {
    flowop deletefile name=expire,filesetname=archive
    flowop createfile name=open-new,filesetname=archive,fd=1
    flowop writewholefile name=store,fd=1,srcfd=1,iosize=1m
    flowop closefile name=close-new,fd=1
    flowop finishoncount name=end,value=$rounds,target=store
  }
}
define process name=viewers
{
  thread name=viewer,instances=$viewers
  {
    flowop read name=stream,filesetname=watched,iosize=256k
  }
}
set mode quit firstdone
run
