#: 3:73: no fileset is called "posts"; did you mean "post"?
define file name=post,path=/tmp
define process name=p { thread name=t { flowop openfile name=o,filename=posts,fd=1 } }
