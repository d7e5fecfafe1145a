#: 2:5: "}" is missing behind $a
run ${a
