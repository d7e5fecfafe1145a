#: 2:35: -5 is below 0
define file name=a,path=/tmp,size=-5
