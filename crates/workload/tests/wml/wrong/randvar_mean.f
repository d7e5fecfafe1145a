#: 2:8: the mean must not be below min
set $a=randvar(type=uniform,min=5)
