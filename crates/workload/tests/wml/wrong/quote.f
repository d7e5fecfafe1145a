#: 2:6: this text has no closing quote
echo "hello
