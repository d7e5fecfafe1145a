#: 3:5: that is longer than a year
define process name=p { thread name=t { flowop delay name=d } }
run 1g
