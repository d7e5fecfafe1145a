#: 2:40: no parameter is called "men"; did you mean "mean"?
set $a=cvar(type=cvar-gamma,parameters=men:5)
