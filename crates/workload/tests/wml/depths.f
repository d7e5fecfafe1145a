# Widths and depths that are drawn.
set $depth=randvar(type=uniform,min=1,mean=3)
set $width=randvar(type=gamma,min=2,mean=8)
define fileset name=a,path=/tmp,entries=100,dirwidth=$width,dirdepthrv=$depth,size=1k,prealloc
define process name=p { thread name=t { flowop listdir name=l,filesetname=a flowop delay name=d,value=1 } }
run 2
