#: 2:20: there is a flowop "read" already
define flowop name=read { flowop delay name=d }
