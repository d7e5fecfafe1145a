#: 2:8: expected "=" behind the variable, found 5
set $a 5
