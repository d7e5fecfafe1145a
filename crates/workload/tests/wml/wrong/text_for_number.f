#: 2:35: expected a number, found "large"
define file name=a,path=/tmp,size=large
