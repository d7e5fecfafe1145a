#: 2:21: expected a variable such as $size
define randvar name=size,type=gamma
