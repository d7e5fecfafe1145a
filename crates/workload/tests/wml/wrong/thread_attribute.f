#: 2:39: no attribute of a thread is called "memsiz"; did you mean "memsize"?
define process name=p { thread name=t,memsiz=1m { flowop delay name=d } }
