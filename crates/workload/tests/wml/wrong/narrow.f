#: 2:52: dirwidth must be at least 2
define fileset name=a,path=/tmp,entries=5,dirwidth=1
