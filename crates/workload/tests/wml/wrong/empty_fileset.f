#: 2:8: a fileset needs entries=… or leafdirs=
define fileset name=a,path=/tmp,dirwidth=5
