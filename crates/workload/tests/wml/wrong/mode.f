#: 2:15: no mode is called "alldon"; did you mean "alldone"?
set mode quit alldon
