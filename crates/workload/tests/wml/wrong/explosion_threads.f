#: 2:32: more than 10000 flowops in the workload
define flowop name=c0 { flowop delay name=d,value=1 flowop delay name=e,value=1 }
define flowop name=c1 { flowop c0 name=u flowop c0 name=v }
define flowop name=c2 { flowop c1 name=u flowop c1 name=v }
define flowop name=c3 { flowop c2 name=u flowop c2 name=v }
define flowop name=c4 { flowop c3 name=u flowop c3 name=v }
define flowop name=c5 { flowop c4 name=u flowop c4 name=v }
define flowop name=c6 { flowop c5 name=u flowop c5 name=v }
define flowop name=c7 { flowop c6 name=u flowop c6 name=v }
define flowop name=c8 { flowop c7 name=u flowop c7 name=v }
define flowop name=c9 { flowop c8 name=u flowop c8 name=v }
define flowop name=c10 { flowop c9 name=u flowop c9 name=v }
define flowop name=c11 { flowop c10 name=u flowop c10 name=v }
define flowop name=c12 { flowop c11 name=u flowop c11 name=v }
define process name=p { thread name=t { flowop c12 name=u } thread name=u { flowop c12 name=u } }
