#: 2:5: a variable is a $ and a name
set $1=5
