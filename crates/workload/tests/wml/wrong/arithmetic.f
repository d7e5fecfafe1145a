#: 2:12: 5 - 7 is no number
set $a=5 - 7
