#: 2:39: prealloc is 101, but must be 0 to 100
define file name=a,path=/tmp,prealloc=101
