#: 2:25: expected thread or "}", found "flowop"
define process name=p { flowop delay name=d }
