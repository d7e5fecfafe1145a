#: 2:48: createfile needs filesetname=
define process name=p { thread name=t { flowop createfile name=o,fd=1 } }
