#: 2:8: nothing to enable is called "lathisto"; did you mean "lathist"?
enable lathisto
