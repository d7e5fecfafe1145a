#: 3:83: zipf is 0, but must be 1 to 10000
define file name=a,path=/tmp
define process name=p { thread name=t { flowop read name=o,filename=a,random,zipf=0,iosize=4k } }
