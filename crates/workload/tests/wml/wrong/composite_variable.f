#: 3:57: no variable of this flowop is called "$b"
define flowop name=a,$x { flowop delay name=d,value=$x }
define process name=p { thread name=t { flowop a name=u,$b=5 } }
