#: 2:8: nothing to create is called "flies"
create flies
