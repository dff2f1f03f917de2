"""Stage `spread`: tasks become tables, so that all members of a kernel can run at once.

Takes: `Plan`.
Gives: `Grid`.
Ensures: what each member reads, adds up and writes is unchanged.

A task tells its members where their terms are; one thread per member looks that up instead. The columns stay as
they are: neighbouring members read neighbouring entries of a strip, whole sectors of the memory of a GPU.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .grid import Grid, Terms
from .plan import Plan
from .plan.forms import ON_GPUS
from .plan.loops import Loop
from .plan.tables import Tables
from .stages import Context, stage


@stage(*ON_GPUS)
def spread(plan: Plan, context: Context) -> Grid:
    tables = Tables(plan.workspace + 1, plan.tables)
    terms = tuple(
        tuple(_terms(plan, loop, plan.tasks[rows], tables) for loop in kernel.loops)
        for kernel, rows in zip(plan.kernels, plan.rows_of_kernels(), strict=True)
    )
    return Grid(replace(plan, tables=tuple(tables.arrays)), terms)


def _terms(plan: Plan, loop: Loop, tasks: np.ndarray, tables: Tables) -> Terms:
    """Where a kernel's members find their terms. tasks : the kernel's, in the order of members"""
    return Terms(*(tables.number(column.astype(_smallest(column))) for column in loop.firsts(tasks, plan.table)))


def _smallest(column: np.ndarray) -> np.dtype:
    return np.min_scalar_type(int(column.max(initial=0)))
