#: 2:5: "16kb" is no number
run 16kb
