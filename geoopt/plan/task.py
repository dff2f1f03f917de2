"""A task: neighbouring members of one kernel, which one thread evaluates. It is a row of a table of int64."""

KERNEL, BEGIN, END, COLUMN, FIRST_STRIP, SHIFT, APART, FIELDS = range(8)  # columns of the table of tasks
TASK_MEMBERS = 1024  # of one task, but for a short rest that the last has besides: what they access fits the cache
SPAN = 1 << 16  # entries that a column in 16 bits can tell apart
