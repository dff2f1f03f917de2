"""Literals of kernels that are alike: where many differ in their numbers only, as the outputs that a loop makes one by
one, they read these from tables, and have one text, which is compiled once.

::

    y0 = x0 * 2    y0 = x0 * 3    ...    becomes    y0 = x0 * x1    where x1 is 2, 3, ...
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from ..kernels import Kernel, Kernels, Leaf
from ..template import Template, bottom_up, replaced

MANY = 16  # kernels


def read_from_tables(kernels: Kernels) -> Kernels:
    """A literal becomes a leaf of one constant for all members."""
    if len(kernels.kernels) < MANY:
        return kernels
    alike: defaultdict[tuple, list[int]] = defaultdict(list)
    literals: list[list[float]] = []
    for number, kernel in enumerate(kernels.kernels):
        key, found = _apart(kernel)
        alike[key].append(number)
        literals.append(found)
    made = list(kernels.kernels)
    for numbers in alike.values():
        if len(numbers) >= MANY and literals[numbers[0]]:
            values = np.array([literals[n] for n in numbers])
            differ = (values.view(np.int64) != values[0].view(np.int64)).any(axis=0)
            for n in numbers:
                made[n] = _with_leaves(made[n], differ)
    return replace(kernels, kernels=tuple(made))


def _apart(kernel: Kernel) -> tuple[tuple, list[float]]:
    """What a kernel computes, but for its literals; and these."""
    order = list(bottom_up(list(kernel.roots)))
    places = {id(e): place for place, e in enumerate(order)}
    lines = ((e.op, tuple(places[id(a)] for a in e.args), e.op != "constant" and e.value) for e in order)
    return (*lines, *(places[id(r)] for r in kernel.roots)), [float(e.value) for e in order if e.op == "constant"]  # type: ignore[arg-type]


def _with_leaves(kernel: Kernel, differ: np.ndarray) -> Kernel:
    """differ : which of the literals, in the order of `_apart`, are read"""
    template, roots, leaves = Template(), list(kernel.roots), list(kernel.leaves)
    constants = [e for e in bottom_up(roots) if e.op == "constant"]
    new = {}
    for e in (e for e, is_read in zip(constants, differ, strict=True) if is_read):
        new[id(e)] = template.make("leaf", (), len(leaves))
        leaves.append(Leaf(None, np.array([e.value]), None))
    return replace(kernel, template=template, roots=tuple(replaced(roots, template, new)), leaves=tuple(leaves))
