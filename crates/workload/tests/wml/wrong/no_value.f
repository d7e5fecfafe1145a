#: 2:30: size needs a value
define file name=a,path=/tmp,size
