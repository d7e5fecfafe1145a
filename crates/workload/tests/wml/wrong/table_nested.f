#: 2:41: expected a percentage, found "{"
set $a=randvar(type=tabular,randtable={{{{100,1,2}},1,2}})
