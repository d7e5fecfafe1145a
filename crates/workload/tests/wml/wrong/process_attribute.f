#: 2:23: no attribute of a process is called "instance"; did you mean "instances"?
define process name=p,instance=5 { thread name=t { flowop delay name=d } }
