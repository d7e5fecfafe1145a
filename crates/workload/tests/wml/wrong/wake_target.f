#: 2:69: no flowop block is called "wait"; known: hold
define process name=p { thread name=t { flowop wakeup name=w,target=wait flowop block name=hold } }
