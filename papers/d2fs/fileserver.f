# Figure 14: Filebench's fileserver with the parameters of the artifact at a sixteenth: 45,000 files of 4 MiB in the mean, of
# which four in five are there when the run begins, 15 threads, I/O of 1 MiB, appends of at most 4 KiB, 400 s. Flowops and
# everything else are those of Filebench's personality of this name. Files take a little more than half of the device.
#
# Sections are a sixteenth, too, and files are not: a section holds half a file here, where it held eight, so nearly all
# sections empty by themselves and no cleaning is needed. files=45000, mean=256k and iosize=64k keep what the paper has, at
# several times the cost.
#
# Operations a second are `wml.summary.ops_per_s`, as in Filebench's `IO Summary`.

set $files=2812
set $mean=4m
set $threads=15
set $iosize=1m
set $append=4k
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
