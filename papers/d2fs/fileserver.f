# Figure 14: Filebench's fileserver with the parameters of the artifact, all bytes a sixteenth: 45,000 files of 256 KiB in the
# mean (4 MiB), of which four in five are there when the run begins, 15 threads, I/O of 64 KiB (1 MiB), appends of at most 256
# bytes (4 KiB), 25 s (400 s). Flowops and everything else are those of Filebench's personality of this name. Files take a
# little more than half of the device, and a section holds eight of them, as in the paper.
#
# Operations a second are `wml.summary.ops_per_s`, as in Filebench's `IO Summary`; sixteen of them move the bytes of one of
# the paper's.

set $files=45000
set $mean=256k
set $threads=15
set $iosize=64k
set $append=256
set $seconds=25

define fileset name=homes,path=/home,entries=$files,size=$mean,filesizegamma=1500,dirwidth=20,prealloc=80

define process name=fileserver
{
  thread name=user,instances=$threads
  {
    flowop createfile name=make,filesetname=homes,fd=1
    flowop writewholefile name=save,fd=1,srcfd=1,iosize=$iosize
    flowop closefile name=close-saved,fd=1
    flowop openfile name=open-old,filesetname=homes,fd=1
    flowop appendfilerand name=append,fd=1,iosize=$append
    flowop closefile name=close-old,fd=1
    flowop openfile name=open,filesetname=homes,fd=1
    flowop readwholefile name=load,fd=1,iosize=$iosize
    flowop closefile name=close,fd=1
    flowop deletefile name=delete,filesetname=homes
    flowop statfile name=stat,filesetname=homes
  }
}
run $seconds
