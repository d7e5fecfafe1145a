#: 2:53: no variable is called "x"
define flowop name=a,$x { flowop delay name=d,value=$x }
define process name=p { thread name=t { flowop a name=u } }
