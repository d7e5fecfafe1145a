#: 2:64: more than 65535 threads
define process name=p,instances=1000 { thread name=t,instances=1000 { flowop delay name=d } }
