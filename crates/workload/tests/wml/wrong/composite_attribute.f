#: 2:22: no attribute of a composite flowop is called "iter"; did you mean "iters"?
define flowop name=a,iter=5 { flowop delay name=d }
