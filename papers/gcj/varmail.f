# Varmail, the second of the four server workloads of the F2FS paper (FAST 2015): small files, each append made durable. Threads and sizes are
# those of Filebench's personality of this name. Each thread ends after so many messages, so that the time is that of a fixed load.
set $messages=1000
set $threads=16
set $rounds=2000
set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)

define fileset name=mail,path=/mail,entries=$messages,size=$size,dirwidth=1000000,prealloc=80

define process name=mailserver
{
  thread name=session,instances=$threads
  {
    flowop deletefile name=expunge,filesetname=mail
    flowop createfile name=deliver,filesetname=mail,fd=1
    flowop appendfilerand name=write-new,fd=1,iosize=16k
    flowop fsync name=sync-new,fd=1
    flowop closefile name=close-new,fd=1
    flowop openfile name=open-old,filesetname=mail,fd=1
    flowop readwholefile name=read-old,fd=1,iosize=1m
    flowop appendfilerand name=write-old,fd=1,iosize=16k
    flowop fsync name=sync-old,fd=1
    flowop closefile name=close-old,fd=1
    flowop openfile name=open,filesetname=mail,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop finishoncount name=end,value=$rounds,target=sync-old
  }
}
set mode quit alldone
run
