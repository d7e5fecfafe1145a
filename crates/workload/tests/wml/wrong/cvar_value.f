#: 2:40: expected mean:NUMBER, found "mean:x"
set $a=cvar(type=cvar-gamma,parameters=mean:x)
