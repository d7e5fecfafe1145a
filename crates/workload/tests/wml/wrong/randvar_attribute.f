#: 2:16: no attribute of a randvar is called "man"; did you mean "mean"?
set $a=randvar(man=5)
