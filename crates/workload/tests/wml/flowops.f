# Every flowop, with the attributes that mean something to it.
set $dir=/tmp
eventgen rate=1000
define fileset name=a,path=$dir,entries=200,dirwidth=10,dirgamma=1000,size=8k,prealloc=60,paralloc,reuse
define fileset name=d,path=$dir,leafdirs=50,dirwidth=5,prealloc=50,trusttree=false
define file name=big,path=$dir,size=1m,prealloc,readonly=false,writeonly=false

define flowop name=roundtrip, $set, $bytes=4k
{
  flowop createfile name=make,filesetname=$set,fd=1
  flowop appendfilerand name=grow,fd=1,iosize=$bytes
  flowop fsync name=sync,fd=1
  flowop closefile name=close,fd=1
}

define process name=worker,instances=2
{
  thread name=files,instances=2,memsize=1m,useism
  {
    flowop roundtrip name=first,$set=a
    flowop roundtrip name=twice,$set=a,$bytes=16k,iters=2
    flowop openfile name=open,filesetname=a,fd=1,noreadahead=false
    flowop readwholefile name=readall,fd=1,iosize=64k
    flowop writewholefile name=writeall,fd=1,srcfd=1,iosize=4k
    flowop appendfile name=append,fd=1,iosize=1k
    flowop fsyncset name=syncset,filesetname=a
    flowop statfile name=fstat,fd=1
    flowop closefile name=close,fd=1
    flowop statfile name=stat,filesetname=a
    flowop deletefile name=delete,filesetname=a,iters=3
    flowop makedir name=mkdir,filesetname=d
    flowop removedir name=rmdir,filesetname=d
    flowop listdir name=ls,filesetname=a
    flowop opslimit name=opslimit
    flowop eventlimit name=eventlimit
  }
  thread name=data
  {
    flowop read name=seqread,filename=big,iosize=64k,iters=4
    flowop read name=randread,filename=big,iosize=4k,random,zipf=990,workingset=256k
    flowop write name=randwrite,filename=big,fd=2,iosize=4k,random,dsync
    flowop read name=directread,filename=big,fd=3,iosize=4k,random,directio
    flowop aiowrite name=later,filename=big,fd=4,iosize=4k,random,iters=4
    flowop aiowait name=await
    flowop read name=rotate,filesetname=a,iosize=1k,opennext
    flowop bwlimit name=bwlimit,target=seqread
    flowop iopslimit name=iopslimit,target=randread
  }
}
define process name=pairs
{
  thread name=poster
  {
    flowop hog name=think,value=1000
    flowop sempost name=post,value=1,target=take,blocking
    flowop wakeup name=wake,target=sleepers
  }
  thread name=taker,instances=2
  {
    flowop semblock name=take,value=2,highwater=8
    flowop block name=sleepers
  }
  thread name=ender
  {
    flowop delay name=rest,value=1
    flowop print name=say,value="a second is over"
    flowop finishoncount name=bycount,value=2,target=rest
    flowop finishonbytes name=bybytes,value=1g
  }
}
set mode quit firstdone
run 10
