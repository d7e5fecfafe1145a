#: 3:76: zipf is for random I/O only
define file name=a,path=/tmp
define process name=p { thread name=t { flowop read name=o,filename=a,zipf=990,iosize=4k } }
