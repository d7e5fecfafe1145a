#: 2:1: no command is called "defin"; did you mean "define"?
defin file name=a
