# Table 2, Fileserver: files of 128 KB in the mean, I/O of 1 MB, appends of 16 KB in the mean.
# The shape is that of a file server: whole files are written, appended to, read, deleted, looked at. Files,
# threads and directory width are those of Filebench's own personality of this name; the paper gives none.
set $files=10000
set $threads=50
set $seconds=5
set $filesize=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)

define fileset name=shared,path=/home,entries=$files,size=$filesize,dirwidth=20,prealloc=80

define process name=fileserver
{
  thread name=user,instances=$threads
  {
    flowop createfile name=make,filesetname=shared,fd=1
    flowop writewholefile name=save,fd=1,srcfd=1,iosize=1m
    flowop closefile name=close-saved,fd=1
    flowop openfile name=open-old,filesetname=shared,fd=1
    flowop appendfilerand name=append,fd=1,iosize=16k
    flowop closefile name=close-old,fd=1
    flowop openfile name=open,filesetname=shared,fd=1
    flowop readwholefile name=load,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop deletefile name=delete,filesetname=shared
    flowop statfile name=stat,filesetname=shared
  }
}
run $seconds
