#: 4:43: iosize is 0, and read moves at least a byte
define fileset name=a,path=/tmp,entries=5,dirwidth=5
define process name=p { thread name=t {
  flowop read name=r,filesetname=a,iosize=0
} }
run 1
