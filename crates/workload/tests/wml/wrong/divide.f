#: 2:12: 5 / 0 is no number
set $a=5 / 0
