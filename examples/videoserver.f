# A video server: viewers stream large files at a fixed rate, while every few seconds an old video makes
# room for a new one. An event is a megabyte.
#
#   nandscape run examples/videoserver.f --stack ext4-pblk
set $dir=/srv/video
set $viewers=48
set $videosize=64m
# Megabytes a second, for all viewers together.
set $rate=96
set $seconds=5

eventgen rate=$rate
define fileset name=watched,path=$dir,entries=8,size=$videosize,dirwidth=4,prealloc
define fileset name=archive,path=$dir,entries=16,size=$videosize,dirwidth=20,prealloc=50

define process name=ingest
{
  thread name=ingest
  {
    flowop deletefile name=expire,filesetname=archive
    flowop createfile name=open-new,filesetname=archive,fd=1
    flowop writewholefile name=store,fd=1,srcfd=1,iosize=1m
    flowop closefile name=close-new,fd=1
    flowop delay name=pause,value=2
  }
}
define process name=viewers
{
  thread name=viewer,instances=$viewers
  {
    flowop read name=stream,filesetname=watched,iosize=256k
    flowop bwlimit name=pace,target=stream
  }
}
run $seconds
