#: 2:61: expected flowop or "}", found "value"
define process name=p { thread name=t { flowop delay name=d value=5 } }
