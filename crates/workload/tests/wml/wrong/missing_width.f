#: 2:8: a fileset needs dirwidth=
define fileset name=a,path=/tmp,entries=5
