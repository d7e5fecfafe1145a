#: 2:20: name is given twice
define file name=a,name=b,path=/tmp
