# A mail server: every message is a small file of its own, and nothing counts as delivered before its
# fsync has returned. Each round throws a message away, delivers a new one, appends to one that is
# there, and reads another.
#
#   nandscape run examples/varmail.f --stack ext4-js-pblk
#   nandscape run examples/varmail.f --stack ext4-fa-ftl --set '$threads=64'
#
# Small enough to run in seconds: papers use 100,000 files and a minute or more.
set $dir=/var/mail
set $messages=2000
set $threads=16
set $seconds=2
# Sizes are gamma distributed around 16 KiB.
set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
# An append adds up to this much.
set $append=16k

# All messages lie in one directory.
define fileset name=mail,path=$dir,entries=$messages,size=$size,dirwidth=1000000,prealloc=80

define process name=mailserver
{
  thread name=session,instances=$threads
  {
    flowop deletefile name=expunge,filesetname=mail
    flowop createfile name=deliver,filesetname=mail,fd=1
    flowop appendfilerand name=write-new,fd=1,iosize=$append
    flowop fsync name=sync-new,fd=1
    flowop closefile name=close-new,fd=1
    flowop openfile name=open-old,filesetname=mail,fd=1
    flowop readwholefile name=read-old,fd=1,iosize=1m
    flowop appendfilerand name=write-old,fd=1,iosize=$append
    flowop fsync name=sync-old,fd=1
    flowop closefile name=close-old,fd=1
    flowop openfile name=open,filesetname=mail,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close,fd=1
  }
}
run $seconds
