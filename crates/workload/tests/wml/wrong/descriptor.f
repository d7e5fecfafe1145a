#: 2:68: fd is 128, but must be 0 to 127
define process name=p { thread name=t { flowop closefile name=o,fd=128 } }
