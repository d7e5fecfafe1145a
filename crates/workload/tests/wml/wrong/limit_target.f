#: 2:104: no flowop of this thread is called "b"; known: a, f
define process name=p { thread name=t { flowop delay name=a,value=1 flowop finishoncount name=f,target=b } }
