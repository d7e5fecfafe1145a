# Table 2, Webserver: files of 16 KB in the mean, I/O of 1 MB, appends of 16 KB in the mean.
# Ten pages are read for each line in a log that all threads share. Files, threads and directory width are those of
# Filebench's own personality of this name; the paper gives none. The run ends after so many appends a thread, two and a half
# minutes. Threads look for the end of the log before they write behind it, as in Filebench, so that appends of threads that
# meet overlap, and 1 GB of them makes a third of that of log. A page takes 1 ms of the client's cores, of which the paper has no word: without any the
# run would be over in a second, and its log still in the page cache.
set $files=1000
set $threads=100
set $appends=1280
set $client=1000000
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)

define fileset name=pages,path=/srv,entries=$files,size=$filesize,dirwidth=20,prealloc=100,readonly
define file name=log,path=/srv,size=16k,prealloc

define flowop name=request
{
  flowop openfile name=open,filesetname=pages,fd=1
  flowop readwholefile name=read,fd=1,iosize=1m
  flowop closefile name=close,fd=1
  flowop hog name=serve,value=$client
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
run 600
