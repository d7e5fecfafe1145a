#: 2:61: no attribute of a flowop is called "valu"; did you mean "value"?
define process name=p { thread name=t { flowop delay name=d,valu=5 } }
