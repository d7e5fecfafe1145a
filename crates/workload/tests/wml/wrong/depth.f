#: 2:65: dirdepthrv must be a randvar
define fileset name=a,path=/tmp,entries=5,dirwidth=5,dirdepthrv=3
