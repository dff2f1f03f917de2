"""Loops: leaves that do not vary in them are read once per member; fixed factors are multiplied with the sum.

The second is a part of family `factors`, the first of `harvest`'s unfinished business: it sees one column per term.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..integers.ids import Ids
from ..kernels import Kernel, Leaf, Loop
from ..native import compiled
from ..template import Expression, rewritten
from .chains import Chains
from .facts import Facts
from .products import Product, flatten_product


def leave_loops(roots: list[Expression], facts: Facts) -> list[Expression]:
    """sum_t(a * x_t) -> a * sum_t(x_t). A loop has at least one term, so that no leaf of `a` loses its influence."""
    if not facts.loops:
        return roots
    chains = Chains(roots, facts)
    return chains.rewritten(lambda e: e.op == "sum", lambda e: _without_fixed_factors(e, chains))


def _without_fixed_factors(e: Expression, chains: Chains) -> Expression | None:
    body, facts = e.args[0], chains.facts
    if not chains.is_open(body):
        return None
    product = flatten_product(body, chains)
    fixed = Product(facts, product.sign, product.over, product.under)
    varying = Product(facts)
    for key, f in product.factors.items():
        (fixed if facts[f.expression].loop is None else varying).factors[key] = f
    term = varying.build()
    if not varying.factors or term is None or (not fixed.factors and fixed.over == fixed.under == fixed.sign == 1):
        return None
    total = facts.make("sum", term, value=e.value)
    fixed.add(total, 1)
    return chains.if_cheaper(fixed.build(), product.old, product.stops)


SAMPLE = 64  # members with several terms of which a leaf is looked at before it is looked at as a whole ...
MANY = 1 << 20  # ... found among so many, if there are any


def read_fixed_leaves_once(kernel: Kernel) -> Kernel:
    """A leaf that is the same in all terms of each member becomes one of the member: h in sum_t(h * x_t)."""
    leaves = list(kernel.leaves)
    numbers = {leaf.ids.key: i for i, leaf in enumerate(leaves) if leaf.ids is not None and leaf.loop is None}
    renamed: dict[int, int] = {}
    for i, leaf in enumerate(kernel.leaves):
        if leaf.loop is None or (fixed := _fixed(leaf, kernel.loops[leaf.loop])) is None:
            continue
        leaves[i] = fixed
        renamed[i] = i if fixed.ids is None else numbers.setdefault(fixed.ids.key, i)
    if not renamed:
        return kernel
    template = kernel.template

    def rename(e: Expression) -> Expression | None:
        return template.make("leaf", (), renamed.get(int(e.value), e.value)) if e.op == "leaf" else None  # type: ignore[arg-type]

    return replace(kernel, roots=tuple(rewritten(list(kernel.roots), template, rename)), leaves=tuple(leaves))


def _fixed(leaf: Leaf, loop: Loop) -> Leaf | None:
    """The leaf of a member, if it does not vary among its terms."""
    segments = loop.segments
    if segments.lengths.min(initial=1) == 0:
        return None
    some = segments.firsts(_longer(segments.lengths))
    if (_values(leaf, some) != _values(leaf, some + some.dtype.type(1))).any():
        return None
    values = leaf.constants if leaf.ids is None else leaf.ids.to_array()
    assert values is not None
    if _varies(values, segments.lengths):
        return None
    first = segments.offsets()[:-1]
    if leaf.ids is None:
        return Leaf(None, values[first], None)
    return Leaf(leaf.ids.compose(Ids.explicit(first)).canonical(), None, None)


def _longer(lengths: np.ndarray) -> np.ndarray:
    """Some members that have several terms, where any has."""
    first = np.flatnonzero(lengths[:MANY] > 1)
    return (first if len(first) or len(lengths) <= MANY else np.flatnonzero(lengths > 1))[:SAMPLE]


@compiled
def _varies(values, lengths):
    """Whether terms of any member have different values; NaN differs from all."""
    first = 0
    for length in lengths:
        for term in range(first, first + length):
            if values[term] != values[first]:
                return True
        first += length
    return False


def _values(leaf: Leaf, terms: np.ndarray) -> np.ndarray:
    """What a leaf reads in some terms."""
    if leaf.ids is None:
        return leaf.constants[terms]  # type: ignore[index]
    return leaf.ids.at(terms)
