#: 2:48: "testrandvar" is not supported
define process name=p { thread name=t { flowop testrandvar name=d } }
