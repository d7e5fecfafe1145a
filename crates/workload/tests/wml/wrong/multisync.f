#: 2:1: "domultisync" is not supported: there is one client
domultisync value=1
