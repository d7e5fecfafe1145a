#: 2:8: a file needs name=
define file path=/tmp
