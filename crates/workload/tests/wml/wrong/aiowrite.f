#: 3:48: aiowrite is for random I/O only
define file name=a,path=/tmp
define process name=p { thread name=t { flowop aiowrite name=o,filename=a,iosize=4k } }
