# Table 2, MongoDB: files of 16 KB, I/O of 16 KB in the mean, reads of 1 MB.
# One document is appended to, one is read, and one of another set deleted until that set is empty: the run ends
# there. As many documents as the file server has files; the paper gives no number.
set $files=10000
set $threads=1

define fileset name=kept,path=/db,entries=$files,size=16k,dirwidth=20,prealloc
define fileset name=expired,path=/db,entries=$files,size=16k,dirwidth=20,prealloc

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
