# Fileserver, of the four server workloads of the F2FS paper (FAST 2015): whole files are written, appended to, read, deleted. Threads and
# sizes are those of Filebench's personality of this name. Each thread ends after so many files.
set $entries=1000
set $threads=50
set $rounds=250
set $size=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)

define fileset name=shared,path=/home,entries=$entries,size=$size,dirwidth=20,prealloc=80

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
    flowop finishoncount name=end,value=$rounds,target=save
  }
}
set mode quit alldone
run
