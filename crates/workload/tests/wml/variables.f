# Every kind of value that a variable may have, and where variables may stand.
set $dir=/work.d/a-b
set $text="files of $dir\n"
set $count=10
set $size=16k
set ${large}=1m
set $huge=2g
set $yes=true
set $no=false
set $all=$count * 4 + $(count) / 5 - 2
set $flat=randvar(type=uniform, min=1k, mean=8k, round=512, randsrc=urandom, seed=7)
set $gamma=randvar(min=512, mean=16k, gamma=1500)
set $table=randvar(type=tabular, min=1k, round=1k, randtable={{60, 1k, 4k}, {30, 4k, 16k}, {10, 16k, 64k}})
define randvar name=$index, type=gamma, min=0, gamma=100, randsrc=rand48
set $erlang=cvar(type=cvar-erlang, parameters=shape:3;rate:4096)
set $exponential=cvar(type=cvar-exponential, parameters=mean:4096, min=1, max=1m, round=512)
set $lognormal=cvar(type=cvar-lognormal, parameters=shape:0.5;scale:8, min=1)
set $normal=cvar(type=cvar-normal, parameters=mean:4096;sigma:100, min=1)
set $triangular=cvar(type=cvar-triangular, parameters=lower:1;upper:9000;mode:4000)
set $uniform=cvar(type=cvar-uniform, parameters=lower:1;upper:4096)
set $weibull=cvar(type=cvar-weibull, parameters=shape:1.5;scale:4096, min=1)
set $cvargamma=cvar(type=cvar-gamma, parameters=mean:16384;gamma:1.5, min=1)

define fileset name=sized, path=$dir, entries=$all, size=$cvargamma, dirwidth=$count, prealloc=$yes
define fileset name=tabular, path=$dir, entries=$count, size=$table, dirwidth=5, prealloc=50
define file name=one, path="$dir/deeper", size=$large, prealloc=$yes

define process name=p
{
  thread name=t
  {
    flowop read name=r1, filesetname=sized, iosize=$size, fd=1, iters=2
    flowop closefile name=c1, fd=1
    flowop write name=w1, filename=one, iosize=$flat, random, fd=2
    flowop write name=w2, fd=2, iosize=$gamma, random
    flowop write name=w3, fd=2, iosize=$erlang, random
    flowop write name=w4, fd=2, iosize=$exponential, random
    flowop write name=w5, fd=2, iosize=$lognormal, random
    flowop write name=w6, fd=2, iosize=$normal, random
    flowop write name=w7, fd=2, iosize=$uniform, random, workingset=$large
    flowop write name=w8, fd=2, iosize=$weibull, random
    flowop write name=w9, fd=2, iosize=$triangular, random
    flowop statfile name=s, filesetname=sized, indexed=$index
    flowop finishoncount name=f, value=$all
  }
}
set mode nousestats
set mode quit firstdone
echo "$text $huge $no"
run 5
