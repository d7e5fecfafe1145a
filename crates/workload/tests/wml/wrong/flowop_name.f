#: 2:48: a flowop needs name=
define process name=p { thread name=t { flowop delay value=5 } }
