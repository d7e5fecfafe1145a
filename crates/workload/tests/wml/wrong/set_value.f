#: 2:9: expected a value, found "}"
set $a= }
