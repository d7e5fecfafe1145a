#: 2:50: the percentages of the table exceed 100
set $a=randvar(type=tabular,randtable={{90,1,2},{20,1,2}})
