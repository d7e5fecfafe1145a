# Fileserver of the paper at a sixteenth: 45,000 files of 4 MB in the mean are 2,812, 15 threads, I/O of 1 MiB, appends of 4 KiB. All else
# is Filebench's personality of this name.
set $files=2812
set $size=cvar(type=cvar-gamma,parameters=mean:4194304;gamma:1.5)
set $seconds=25

define fileset name=shared,path=/home,entries=$files,size=$size,dirwidth=20,prealloc=80

define process name=fileserver
{
  thread name=user,instances=15
  {
    flowop createfile name=make,filesetname=shared,fd=1
    flowop writewholefile name=save,fd=1,srcfd=1,iosize=1m
    flowop closefile name=close-saved,fd=1
    flowop openfile name=open-old,filesetname=shared,fd=1
    flowop appendfilerand name=append,fd=1,iosize=4k
    flowop closefile name=close-old,fd=1
    flowop openfile name=open,filesetname=shared,fd=1
    flowop readwholefile name=load,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop deletefile name=delete,filesetname=shared
    flowop statfile name=stat,filesetname=shared
  }
}
set mode quit timeout
run $seconds
