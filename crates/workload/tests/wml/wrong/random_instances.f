#: 3:33: a random variable cannot stand here
set $n=randvar(type=gamma,mean=5)
define process name=p,instances=$n { thread name=t { flowop delay name=d } }
