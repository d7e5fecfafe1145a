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
define flowop name=c13 { flowop c12 name=u flowop c12 name=v }
define flowop name=c14 { flowop c13 name=u flowop c13 name=v }
define flowop name=c15 { flowop c14 name=u flowop c14 name=v }
define flowop name=c16 { flowop c15 name=u flowop c15 name=v }
define flowop name=c17 { flowop c16 name=u flowop c16 name=v }
define flowop name=c18 { flowop c17 name=u flowop c17 name=v }
define flowop name=c19 { flowop c18 name=u flowop c18 name=v }
define process name=p { thread name=t { flowop c19 name=u } }
