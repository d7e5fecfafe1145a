#: 2:1: "system" is not supported: a workload file runs no programs
system "rm -rf /"
