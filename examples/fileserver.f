# A file server for home directories: users write whole files, append, read whole files, delete and
# look at attributes, without an fsync. Write-back and the FTL's collection decide.
#
#   nandscape run examples/fileserver.f --stack ext4-pblk
#   nandscape run examples/fileserver.f --stack ext4-js-pblk --set '$files=10000' --set '$seconds=10'
set $dir=/home
set $files=2000
set $threads=50
set $seconds=1
# Sizes are gamma distributed around 128 KiB.
set $size=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $append=16k

define fileset name=homes,path=$dir,entries=$files,size=$size,dirwidth=20,prealloc=80

define process name=fileserver
{
  thread name=user,instances=$threads
  {
    flowop createfile name=make,filesetname=homes,fd=1
    flowop writewholefile name=save,fd=1,srcfd=1,iosize=1m
    flowop closefile name=close-saved,fd=1
    flowop openfile name=open-log,filesetname=homes,fd=1
    flowop appendfilerand name=append,fd=1,iosize=$append
    flowop closefile name=close-log,fd=1
    flowop openfile name=open,filesetname=homes,fd=1
    flowop readwholefile name=load,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop deletefile name=delete,filesetname=homes
    flowop statfile name=stat,filesetname=homes
  }
}
run $seconds
