# Ends when every thread has done its part.
define process name=p,nice=10
{
  thread name=short,ioprio=3 { flowop delay name=d1,value=1 flowop finishoncount name=f1,value=1,target=d1 }
  thread name=long { flowop delay name=d2,value=2 flowop finishoncount name=f2,value=1,target=d2 }
}
set mode quit alldone
run
