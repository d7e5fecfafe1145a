#: 3:48: write needs iosize=
define file name=a,path=/tmp
define process name=p { thread name=t { flowop write name=o,filename=a } }
