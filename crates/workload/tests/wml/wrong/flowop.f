#: 2:48: no flowop is called "dlay"; did you mean "delay"?
define process name=p { thread name=t { flowop dlay name=d } }
