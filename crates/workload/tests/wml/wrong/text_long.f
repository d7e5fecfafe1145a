#: 5:8: this text is longer than 4096 bytes
set $a="0123456789abcdef"
set $a="$a$a$a$a$a$a$a$a"
set $a="$a$a$a$a$a$a$a$a"
set $a="$a$a$a$a$a$a$a$a"
