#: 2:40: expected "{", which begins {percent, from, to}, found 5
set $a=randvar(type=tabular,randtable={5})
