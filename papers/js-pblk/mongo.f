# Table 2, MongoDB: files of 16 KB, I/O of 16 KB in the mean, reads of 1 MB.
# One document is appended to, one is read, and one is replaced: deleted, and another written, so that the set keeps its size
# in a run of minutes. As many documents as the file server has files; the paper gives no number. Each of the three takes
# 1 ms of the client's core, of which the paper has no word: without any the run would be over in a second.
set $files=10000
set $threads=1
set $length=120
set $client=1000000

define fileset name=documents,path=/db,entries=$files,size=16k,dirwidth=20,prealloc=80

define process name=store
{
  thread name=worker,instances=$threads
  {
    flowop openfile name=open-grown,filesetname=documents,fd=1
    flowop appendfilerand name=grow,fd=1,iosize=16k
    flowop closefile name=close-grown,fd=1
    flowop hog name=update,value=$client
    flowop openfile name=open,filesetname=documents,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop hog name=query,value=$client
    flowop deletefile name=expire,filesetname=documents
    flowop createfile name=make,filesetname=documents,fd=1
    flowop writewholefile name=insert,fd=1,srcfd=1,iosize=1m
    flowop closefile name=close-inserted,fd=1
    flowop hog name=replace,value=$client
  }
}
run $length
