#: 2:39: expected true or false, found "maybe"
define file name=a,path=/tmp,readonly=maybe
