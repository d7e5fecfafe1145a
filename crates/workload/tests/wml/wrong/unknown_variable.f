#: 3:18: no variable is called "drectory"; did you mean "directory"?
set $directory=/tmp
define file path=$drectory,name=a
