#: 2:35: no flowop is called "later"
define flowop name=early { flowop later name=l }
define flowop name=later { flowop delay name=d }
define process name=p { thread name=t { flowop early name=u } }
