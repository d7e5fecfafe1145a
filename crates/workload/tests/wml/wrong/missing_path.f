#: 2:8: a fileset needs path=
define fileset name=a,entries=5,dirwidth=5
