#: 2:40: max must not be below min
set $a=cvar(type=cvar-normal,min=5,max=4)
