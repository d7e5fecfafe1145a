#: 2:23: no attribute of a fileset is called "entrys"; did you mean "entries"?
define fileset name=a,entrys=5
