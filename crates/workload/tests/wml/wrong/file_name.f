#: 2:18: "a/b" cannot be the name of a directory
define file name=a/b,path=/tmp
