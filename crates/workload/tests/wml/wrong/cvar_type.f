#: 2:18: no cvar is called "cvar-gama"; did you mean "cvar-gamma"?
set $a=cvar(type=cvar-gama)
