# A surrogate for YCSB-F (half reads, half reads that are followed by an update) on InnoDB at a sixteenth, not the benchmark: no
# database runs here. It has what that asks of the file system: reads of pages that the buffer pool does not have, a redo log that
# is synced per update, and dirty pages, which cleaners write in batches of 1 MiB, first to the doublewrite file and then to their
# places. A round is four operations: each reads a page of 8 KiB, two update it. As with InnoDB's default flush method, pages go
# through the page cache and are synced. Half of the accesses go to a twentieth of the tables, three tenths to the next 15 %, the
# rest to what is left: three steps of a zipf distribution. Left out: queries, locks, undo, indexes, InnoDB's checkpoints, group
# commit, and the cores that these take.
set $scale=1
set $hot=519m / $scale
set $warm=1556m / $scale
set $rest=8297m / $scale
set $cold=186m / $scale
set $seconds=8

define file name=hot,path=/db,size=$hot,prealloc
define file name=warm,path=/db,size=$warm,prealloc
define file name=rest,path=/db,size=$rest,prealloc
define fileset name=cold,path=/old,entries=16,size=$cold,dirwidth=16,dirgamma=0,prealloc
define fileset name=redo,path=/log,entries=15,size=4m,dirwidth=16,dirgamma=0,prealloc
define fileset name=doublewrite,path=/log,entries=4,size=1m,dirwidth=16,dirgamma=0,prealloc

define process name=connections
{
  thread name=connection,instances=15
  {
    flowop read name=read-hot,filename=hot,iosize=8k,random,fd=1,iters=2
    flowop read name=read-warm,filename=warm,iosize=8k,random,fd=2
    flowop read name=read-rest,filename=rest,iosize=8k,random,fd=3
    flowop write name=log,filesetname=redo,iosize=4k,random,fd=4
    flowop fsync name=commit,fd=4
    flowop sempost name=dirtied,value=1,target=dirty,blocking
    flowop write name=log,filesetname=redo,iosize=4k,random,fd=4
    flowop fsync name=commit,fd=4
    flowop sempost name=dirtied,value=1,target=dirty,blocking
  }
}

define process name=cleaners
{
  thread name=cleaner,instances=4
  {
    flowop semblock name=dirty,value=128,highwater=1024
    flowop write name=batch,filesetname=doublewrite,iosize=1m,random,fd=5
    flowop fsync name=batch-sync,fd=5
    flowop write name=page-hot,filename=hot,iosize=8k,random,iters=64,fd=1
    flowop write name=page-warm,filename=warm,iosize=8k,random,iters=38,fd=2
    flowop write name=page-rest,filename=rest,iosize=8k,random,iters=26,fd=3
    flowop fsync name=hot-sync,fd=1
    flowop fsync name=warm-sync,fd=2
    flowop fsync name=rest-sync,fd=3
  }
}
set mode quit timeout
run $seconds
