# Section 4: an OLTP database on ext4. The shape is that of Filebench's personality of this name: many clients read,
# ten writers and a log writer write synchronously. Files and sizes are its defaults; the paper gives none.
set $clients=200
set $writers=10
set $filesize=10m
set $seconds=1

define fileset name=tables,path=/db,entries=10,size=$filesize,dirwidth=1024,prealloc=100
define file name=redo,path=/db,size=10m,prealloc

define process name=logwriter
{
  thread name=logwriter
  {
    flowop aiowrite name=log-write,filename=redo,iosize=256k,random,dsync
    flowop aiowait name=log-wait
    flowop semblock name=log-block,value=3200,highwater=1000
  }
}

define process name=writer,instances=$writers
{
  thread name=writer
  {
    flowop aiowrite name=write,filesetname=tables,iosize=2k,random,iters=100,opennext,dsync
    flowop hog name=write-work,value=10000
    flowop semblock name=write-block,value=1000,highwater=2000
    flowop aiowait name=write-wait
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
run $seconds
