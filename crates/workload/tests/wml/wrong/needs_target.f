#: 2:48: wakeup needs target=
define process name=p { thread name=t { flowop wakeup name=w } }
