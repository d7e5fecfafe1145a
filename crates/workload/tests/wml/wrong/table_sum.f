#: 2:39: the percentages of the table add up to 90, not to 100
set $a=randvar(type=tabular,randtable={{90,1,2}})
