#: 2:69: a flowop has no variables of its own
define process name=p { thread name=t { flowop delay name=d,value=1,$x=5 } }
