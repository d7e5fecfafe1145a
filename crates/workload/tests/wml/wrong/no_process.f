#: 2:1: there is no process that could run
run 5
