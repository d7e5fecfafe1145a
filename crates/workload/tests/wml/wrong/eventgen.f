#: 2:10: no attribute of an eventgen is called "rat"; did you mean "rate"?
eventgen rat=5
