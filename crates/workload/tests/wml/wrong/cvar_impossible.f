#: 2:40: the scale is -2.6
set $a=cvar(type=cvar-gamma,parameters=mean:-4;gamma:1.5)
