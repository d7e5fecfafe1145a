#: 2:21: a randtable goes with type=tabular only
set $a=randvar(type=gamma,randtable={{100,1,2}})
