#: 2:25: "/tmp/../etc" names no directory below the root
define file name=a,path=/tmp/../etc
