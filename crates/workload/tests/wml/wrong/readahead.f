#: 3:75: noreadahead is not supported
define file name=a,path=/tmp
define process name=p { thread name=t { flowop openfile name=o,filename=a,noreadahead } }
