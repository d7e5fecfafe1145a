# Documents as files: one is appended to, one is read, and one of another set is deleted, until that set is
# empty.
#
#   nandscape run examples/mongo.f --stack ext4-pblk
set $dir=/var/documents
set $documents=1000
set $threads=4

define fileset name=kept,path=$dir,entries=$documents,size=16k,dirwidth=20,prealloc
define fileset name=expired,path=$dir,entries=$documents,size=16k,dirwidth=20,prealloc

define process name=store
{
  thread name=worker,instances=$threads
  {
    flowop openfile name=open-grown,filesetname=kept,fd=1
    flowop appendfilerand name=grow,fd=1,iosize=16k
    flowop closefile name=close-grown,fd=1
    flowop openfile name=open,filesetname=kept,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop deletefile name=expire,filesetname=expired
  }
}
set mode quit firstdone
run
