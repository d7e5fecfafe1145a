# A web proxy: a page that is not there yet replaces an old one in the cache on disk, then five that are
# there are read. An event lets one such round begin.
#
#   nandscape run examples/webproxy.f --stack ext4-pblk
#   nandscape run examples/webproxy.f --stack ext4-pblk --set '$rate=0'      as fast as it goes
set $dir=/var/cache/proxy
set $pages=5000
set $threads=100
set $seconds=2
# Rounds a second; 0: as many as there can be.
set $rate=2000

eventgen rate=$rate
define fileset name=cache,path=$dir,entries=$pages,size=16k,dirwidth=1000000,prealloc=80

define flowop name=hit
{
  flowop openfile name=open,filesetname=cache,fd=1
  flowop readwholefile name=read,fd=1,iosize=1m
  flowop closefile name=close,fd=1
}

define process name=proxy
{
  thread name=worker,instances=$threads
  {
    flowop deletefile name=evict,filesetname=cache
    flowop createfile name=fetch,filesetname=cache,fd=1
    flowop appendfilerand name=store,fd=1,iosize=16k
    flowop closefile name=stored,fd=1
    flowop hit name=hit,iters=5
    flowop eventlimit name=limit
  }
}
run $seconds
