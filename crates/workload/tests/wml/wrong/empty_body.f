#: 2:41: expected flowop or "}", found "}"
define process name=p { thread name=t { } }
