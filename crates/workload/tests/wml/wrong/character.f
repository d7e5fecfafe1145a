#: 2:5: "?" has no meaning here
set ?=5
