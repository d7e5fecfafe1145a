#: 2:8: nothing to define is called "filesets"; did you mean "fileset"?
define filesets name=a
