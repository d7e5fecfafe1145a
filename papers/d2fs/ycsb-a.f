# Figure 14: a surrogate for YCSB-A on InnoDB, at a sixteenth of the paper's sizes: 16 M records of 8 KB in a database of 174
# GB beside 50 GB of cold files, 15 threads, zipfian, and the paper's own mix of 20 % reads and 80 % updates. No database runs
# here.
#
# Modelled: the page cache of the host is the buffer pool (LRU, as large as `host.memory`, empty when the run begins). An
# operation looks at a page of 16 KiB, which is read where the pool lacks it; an update then makes a page of the same
# distribution dirty, writes to the redo log, and waits until that is durable. The redo log is written over and over; each
# thread has a part of it in a file of its own, and syncs by itself. Page cleaners wait for so many dirty pages; each then
# writes as many to its doublewrite file and syncs that, then syncs the pages at their places. Threads wait when they are
# `ahead` pages behind. Sizes of the redo log and the doublewrite files are part of the database's.
# Left out: group commit, the binary log, undo pages, reads of the tree above the leaves, splits, locks, and that the page
# which an update changes is the one that it looked at. A page that is changed twice before the cleaner comes is written once
# at its place, but counts twice for the doublewrite file. Periods and sizes of InnoDB's own are not in the paper.
#
# Every operation does `work` once: operations a second are `wml.flowops.1.ops_per_s`.

# GB of the paper are 10^9 bytes, of which this is a sixteenth, divided by `scale`; 64m takes them for 2^30.
set $scale=1
set $gb=62500000 / $scale
set $database=174 * $gb
set $cold=50 * $gb
set $threads=15
# Of a hundred operations, those that update.
set $updates=randvar(type=tabular,round=1,randtable={{20,0,0},{80,1,1}})
set $page=16k
# YCSB's exponent of zipf, in thousandths.
set $skew=990
# CPU time of an operation in client and server; chosen.
set $cpu_ns=100000
set $cleaners=4
# InnoDB's: bytes of the log for each update, and sizes; chosen.
set $log=4k
set $redo=32m
set $doublewrite=2m
# Pages that a cleaner takes at once, as many as fit in its doublewrite file, and how many more may wait for them.
set $batch=128
set $ahead=256
set $seconds=15

set $double_all=$doublewrite * $cleaners
set $table=$database - $redo - $double_all
# A post reaches each cleaner, so each waits for what all of them take; they begin together, as InnoDB's do.
set $due=$batch * $cleaners
set $log_file=$redo / $threads
set $commits=$log_file / $log
define file name=table,path=/db,size=$table,prealloc
define fileset name=redo,path=/db,entries=$threads,size=$log_file,dirwidth=1000,prealloc
define fileset name=doublewrite,path=/db,entries=$cleaners,size=$doublewrite,dirwidth=1000,prealloc
define file name=cold,path=/cold,size=$cold,prealloc

define flowop name=update
{
  flowop write name=modify,filename=table,fd=1,iosize=$page,random,zipf=$skew
  flowop write name=log,filesetname=redo,fd=2,iosize=$log
  flowop fsync name=commit,fd=2
  flowop sempost name=dirtied,value=1,target=dirty,blocking
}
define flowop name=operation
{
  flowop read name=look,filename=table,fd=1,iosize=$page,random,zipf=$skew
  flowop update name=update,iters=$updates
  flowop hog name=work,value=$cpu_ns
}
define process name=database
{
  thread name=cleaner,instances=$cleaners
  {
    flowop semblock name=dirty,value=$due,highwater=$ahead
    flowop write name=double,filesetname=doublewrite,fd=1,iosize=$doublewrite
    flowop fsync name=double-sync,fd=1
    flowop closefile name=double-close,fd=1
    flowop openfile name=places,filename=table,fd=2
    flowop fsync name=places-sync,fd=2
    flowop closefile name=places-close,fd=2
  }
  thread name=user,instances=$threads
  {
    flowop operation name=all,iters=$commits
    flowop closefile name=wrap,fd=2
  }
}
run $seconds
