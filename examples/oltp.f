# A database: many clients read blocks of its files at random and then work; writers bring dirty blocks to
# the files, and one writes the log, both durably and asynchronously. Clients post what they changed to
# the writers, and wait when these are too far behind.
#
#   nandscape run examples/oltp.f --stack ext4-pblk
#   nandscape run examples/oltp.f --stack ext4-fa-ftl --set '$block=4k' --set '$direct=true'
set $dir=/var/db
set $clients=50
set $writers=10
set $block=2k
set $direct=false
# Of each of the ten files, and of the log.
set $filesize=10m
set $seconds=2
# What a transaction takes of a core, in nanoseconds.
set $work=200000

define fileset name=tables,path=$dir,entries=10,size=$filesize,dirwidth=1024,prealloc=100
define file name=redo,path=$dir,size=$filesize,prealloc

define process name=logwriter
{
  thread name=logwriter
  {
    flowop aiowrite name=log-write,filename=redo,iosize=256k,random,dsync,directio=$direct
    flowop aiowait name=log-wait
    flowop semblock name=log-block,value=800,highwater=250
  }
}

define process name=writer,instances=$writers
{
  thread name=writer
  {
    flowop aiowrite name=write,filesetname=tables,iosize=$block,random,iters=100,opennext,dsync,directio=$direct
    flowop hog name=write-work,value=10000
    flowop semblock name=write-block,value=250,highwater=500
    flowop aiowait name=write-wait
  }
}

define process name=shadow,instances=$clients
{
  thread name=shadow
  {
    flowop read name=read,filesetname=tables,iosize=$block,random,opennext,directio=$direct
    flowop hog name=work,value=$work
    flowop sempost name=post-log,value=1,target=log-block,blocking
    flowop sempost name=post-writers,value=1,target=write-block,blocking
  }
}
run $seconds
