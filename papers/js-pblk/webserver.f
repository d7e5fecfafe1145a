# Table 2, Webserver: files of 16 KB in the mean, I/O of 1 MB, appends of 16 KB in the mean.
# Ten pages are read for each line in a log that all threads share. Files, threads and directory width are those of
# Filebench's own personality of this name; the paper gives none. The run ends after so many appends a thread, 500 MB of log:
# a run of minutes would fill the volume with it.
set $files=1000
set $threads=100
set $appends=640
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)

define fileset name=pages,path=/srv,entries=$files,size=$filesize,dirwidth=20,prealloc=100,readonly
define file name=log,path=/srv,size=16k,prealloc

define flowop name=request
{
  flowop openfile name=open,filesetname=pages,fd=1
  flowop readwholefile name=read,fd=1,iosize=1m
  flowop closefile name=close,fd=1
}

define process name=webserver
{
  thread name=worker,instances=$threads
  {
    flowop request name=get,iters=10
    flowop appendfilerand name=log,filename=log,fd=2,iosize=16k
    flowop finishoncount name=end,value=$appends,target=log
  }
}
run
