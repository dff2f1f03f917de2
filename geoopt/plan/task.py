"""A task: neighbouring members of one kernel, which one thread evaluates. It is a row of a table of int64."""

# the fields of a task: its kernel; its first member, and that behind the last; what is added to the number of a member
# for its entry in the kernel's columns; the first of its strips; where its block of intermediates is, less the first
# member, and how far the block's lanes are apart (`allocate`); from `FIELDS` on, the bases of columns (`compress`)
KERNEL, BEGIN, END, COLUMN, FIRST_STRIP, SHIFT, APART, FIELDS = range(8)
NAMES = {BEGIN: "begin", END: "end", COLUMN: "column", FIRST_STRIP: "strip", SHIFT: "shift", APART: "apart"}
TASK_MEMBERS = 1024  # of one task, but for a short rest that the last has besides: what they access fits the cache
SPAN = 1 << 16  # entries that a column in 16 bits can tell apart


def field_name(field: int) -> str:
    """What a field is called: begin, end, column, strip, shift, apart, base0, base1, ..."""
    return NAMES.get(field, f"base{field - FIELDS}")
