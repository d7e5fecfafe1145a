#: 2:70: d reads and writes nothing
define process name=p { thread name=t { flowop bwlimit name=l,target=d flowop delay name=d,value=1 } }
