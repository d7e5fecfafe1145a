#: 2:1: expected a command such as set, define or run, found 5
5
