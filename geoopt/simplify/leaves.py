"""Leaves: columns of constants that are equal, or opposite, are read once. `harvest` tells columns apart by where they
come from, not by what they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..integers.hashing import content
from ..kernels import Kernel
from ..template import Expression, rewritten

BITS, SIGN = np.int64, np.int64(np.iinfo(np.int64).min)  # of a double: NaN equals itself, 0.0 and -0.0 are opposite


def read_equal_constants_once(kernel: Kernel, opposite: bool) -> Kernel:
    """opposite : whether minus a leaf stands for one whose constants are all opposite, too"""
    first: dict[tuple[int | None, int], list[int]] = {}  # different leaves, by their loops and magnitudes
    stands_for: dict[int, tuple[int, bool]] = {}  # a leaf, and whether it is opposite
    constants = {n: leaf.constants for n, leaf in enumerate(kernel.leaves) if leaf.constants is not None}
    for number, values in constants.items():
        alike = first.setdefault((kernel.leaves[number].loop, content(np.abs(values))), [])
        for other in alike:
            difference = values.view(BITS) ^ constants[other].view(BITS)
            if not difference.any() or (opposite and (difference == SIGN).all()):
                stands_for[number] = other, bool(difference.any())
                break
        else:
            alike.append(number)
    if not stands_for:
        return kernel
    template = kernel.template

    def stand_in(e: Expression) -> Expression | None:
        if e.op != "leaf" or e.value not in stands_for:
            return None
        other, is_opposite = stands_for[e.value]  # type: ignore[index]
        leaf = template.make("leaf", (), other)
        return template.make("negative", (leaf,)) if is_opposite else leaf

    return replace(kernel, roots=tuple(rewritten(list(kernel.roots), template, stand_in)))
