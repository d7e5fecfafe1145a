#: 2:46: a stretch must not end before it begins
set $a=randvar(type=tabular,randtable={{90,5,2}})
