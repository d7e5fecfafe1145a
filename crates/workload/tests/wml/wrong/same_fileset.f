#: 3:1: there is a fileset "a" already
define file name=a,path=/tmp
define file name=a,path=/tmp
