#: 2:8: "multi" is not supported: there is one client
enable multi master=a, client=b
