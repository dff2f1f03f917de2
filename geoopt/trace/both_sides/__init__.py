"""Traced code with a branch for each element: it runs both sides of its branches, one after the other.

A function whose branches would take too many paths (`trace.branches`) is rewritten and traced again::

    for i in range(len(x)):                 for i in range(len(x)):
        if x[i] > 0:                            for side in Branch(x[i] > 0, ...):
            out[i] = x[i]                           if side: store(out, i, x[i])
        else:                                       else: n = in_place("iadd", n, 1)
            n += 1                                  n = left(...)

Each side begins with the variables as they were before the branch; afterwards each variable is a choice between what
the sides have made of it. What a side puts into arrays is put there where its condition holds (`symbolic.guards`).
What cannot be chosen between, or changed where a condition holds, is refused.

    functions    which functions are rewritten, and their code while a function is traced
    statements   how statements are rewritten;  changing_statements : of these, what changes something;
                 expressions : what stands in them, rewritten;  contents : as it is
    runtime      what rewritten code calls:  conditions : branches;  changes : what a side changes;
                 while_loops : loops that values end;  turns : one of their turns
"""
