# Figure 14: a surrogate for TPC-C on InnoDB, at a sixteenth of the paper's sizes: 1700 warehouses in a database of 155 GB
# beside 60 GB of cold files, 15 connections. No database runs here.
#
# Modelled: the page cache of the host is the buffer pool (LRU, as large as `host.memory`, empty when the run begins). A
# transaction looks at pages of 16 KiB, which are read where the pool lacks them, makes others of the same distribution dirty,
# writes to the redo log, and waits until that is durable. The redo log is written over and over; each thread has a part of it
# in a file of its own, and syncs by itself. Page cleaners wait for so many dirty pages; each then writes as many to its
# doublewrite file and syncs that, then syncs the pages at their places. Threads wait when they are `ahead` pages behind.
# Sizes of the redo log and the doublewrite files are part of the database's.
# Pages of a transaction are means over the mix of the benchmark, chosen from what its five transactions touch beyond the few
# pages of warehouses and districts, which are always in the pool: an order of ten lines about 12 to read and 14 to write, a
# payment 4 and 4, a delivery 40 and 40, the two that only read 10 and 200.
# Left out: group commit, the binary log, undo pages, one file for each table, growth of the database, splits, locks, that
# transactions differ, and that pages which are changed are among those looked at. A page that is changed twice before the
# cleaner comes is written once at its place, but counts twice for the doublewrite file. Periods and sizes of InnoDB's own are
# not in the paper.
#
# Every transaction does `work` once: transactions a second are `wml.flowops.1.ops_per_s`.

# GB of the paper are 10^9 bytes, of which this is a sixteenth, divided by `scale`; 64m takes them for 2^30.
set $scale=1
set $gb=62500000 / $scale
set $database=155 * $gb
set $cold=60 * $gb
set $threads=15
# Pages that a transaction looks at, and that it changes; chosen, see above.
set $reads=17
set $updates=10
set $page=16k
# Zipf's exponent in thousandths: about three in four accesses go to a fifth of the pages; chosen.
set $skew=800
# CPU time of a transaction in client and server; chosen.
set $cpu_ns=1000000
set $cleaners=4
# InnoDB's: bytes of the log for each transaction, and sizes; chosen.
set $log=4k
set $redo=32m
set $doublewrite=2m
# Pages that a cleaner takes at once, as many as fit in its doublewrite file, and how many more may wait for them.
set $batch=128
set $ahead=256
set $seconds=15

set $double_all=$doublewrite * $cleaners
set $tables=$database - $redo - $double_all
# A post reaches each cleaner, so each waits for what all of them take; they begin together, as InnoDB's do.
set $due=$batch * $cleaners
set $log_file=$redo / $threads
set $commits=$log_file / $log
define file name=tables,path=/db,size=$tables,prealloc
define fileset name=redo,path=/db,entries=$threads,size=$log_file,dirwidth=1000,prealloc
define fileset name=doublewrite,path=/db,entries=$cleaners,size=$doublewrite,dirwidth=1000,prealloc
define file name=cold,path=/cold,size=$cold,prealloc

define flowop name=transaction
{
  flowop read name=look,filename=tables,fd=1,iosize=$page,random,zipf=$skew,iters=$reads
  flowop write name=modify,filename=tables,fd=1,iosize=$page,random,zipf=$skew,iters=$updates
  flowop write name=log,filesetname=redo,fd=2,iosize=$log
  flowop fsync name=commit,fd=2
  flowop sempost name=dirtied,value=$updates,target=dirty,blocking
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
    flowop openfile name=places,filename=tables,fd=2
    flowop fsync name=places-sync,fd=2
    flowop closefile name=places-close,fd=2
  }
  thread name=terminal,instances=$threads
  {
    flowop transaction name=all,iters=$commits
    flowop closefile name=wrap,fd=2
  }
}
run $seconds
