#: 2:33: instances is 0, but must be 1 to 65535
define process name=p,instances=0 { thread name=t { flowop delay name=d } }
