#: 2:21: no kind of randvar is called "gama"; did you mean "gamma"?
set $a=randvar(type=gama)
