# What an fsync writes: one thread appends to a log and syncs it, among many that make and delete files
# and never ask. JBD2 commits what all of them have changed; a record is of one file.
#
#     nandscape sweep examples/fsync-among.toml

set $dir=/among
set $files=2000
set $dirwidth=40
set $filesize=16k
set $many=16
set $rate=4000
set $seconds=5

define fileset name=others,path=$dir,size=$filesize,entries=$files,dirwidth=$dirwidth,prealloc=50
define fileset name=log,path=$dir,size=1m,entries=1,dirwidth=2,prealloc=100

define process name=many,instances=1 {
  thread name=maker,memsize=1m,instances=$many {
    flowop createfile name=make,filesetname=others,fd=1
    flowop writewholefile name=fill,fd=1,iosize=16k
    flowop closefile name=close-made,fd=1
    flowop deletefile name=delete,filesetname=others
    flowop eventlimit name=pace
  }
}

define process name=one,instances=1 {
  thread name=logger,memsize=1m,instances=1 {
    flowop openfile name=open,filesetname=log,fd=1
    flowop appendfile name=append,fd=1,iosize=4k
    flowop fsync name=sync,fd=1
    flowop closefile name=close,fd=1
  }
}

# All makers together.
eventgen rate=$rate

run $seconds
