"""NumPy's einsum: products that sum."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import Symbolic
from .array_moving import viewed
from .array_sums import sum_
from .dispatch import implements, numbers

Labels = tuple[Hashable, ...]  # one for each axis


@dataclass(frozen=True, eq=False)
class Term:
    """A factor of a product, with its axes labelled; no label twice."""

    labels: Labels
    values: Symbolic

    def lengths(self) -> dict[Hashable, int]:
        return dict(zip(self.labels, self.values.shape, strict=True))


@implements(np.einsum)
def einsum(*operands: Any, optimize: Any = False, order: str = "K") -> Symbolic:
    """Axes are summed as soon as no other factor has them; factors are multiplied in pairs, cheapest first, whatever
    order NumPy is to find or to have the result in."""
    inputs, output, factors = _parsed(operands)
    result = contracted([_term(labels, x) for labels, x in zip(inputs, factors, strict=True)], output)
    is_moved = len(inputs) == 1 and set(inputs[0]) == set(output)  # NumPy gives a view, too
    return result if is_moved else result.copy()


def contracted(terms: list[Term], output: Labels) -> Symbolic:
    """The sum, over all labels that are not in the output, of the product of all terms."""
    missing = set(output) - {label for t in terms for label in t.labels}
    if missing or len(set(output)) < len(output):
        raise ValueError("each output subscript must appear once in the output, and in the input")
    terms = list(terms)
    while True:
        terms = [_without_own(t, [o for o in terms if o is not t], output) for t in terms]
        if len(terms) == 1:
            return _aligned(terms[0], output)
        i, j = min(itertools.combinations(range(len(terms)), 2), key=lambda pair: _cost(pair, terms, output))
        product = _product(terms[i], terms[j])
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [product]


def _cost(pair: tuple[int, int], terms: list[Term], output: Labels) -> tuple[int, int]:
    """Of multiplying two terms: how many products, and how many are left after summing."""
    rest = {label for k, t in enumerate(terms) if k not in pair for label in t.labels} | set(output)
    lengths = _joint_lengths(*(terms[k] for k in pair))
    left = [n for label, n in lengths.items() if label in rest]
    return math.prod(lengths.values()), math.prod(left)


def _joint_lengths(first: Term, second: Term) -> dict[Hashable, int]:
    lengths, others = first.lengths(), second.lengths()
    for label, n in others.items():
        if label in lengths and n != lengths[label] and 1 not in (n, lengths[label]):
            raise ValueError(f"an axis has two lengths: {lengths[label]} and {n}")
        lengths[label] = n if lengths.get(label, 1) == 1 else lengths[label]
    return lengths


def _product(first: Term, second: Term) -> Term:
    """Axes in the order of the first, then of the second; the longest in front, where mesh elements belong."""
    lengths = _joint_lengths(first, second)
    order = tuple(sorted(lengths, key=lambda label: -lengths[label]))
    return Term(order, _aligned(first, order, True) * _aligned(second, order, True))


def _without_own(term: Term, others: list[Term], output: Labels) -> Term:
    """Summed over the labels that nothing else has; short axes first."""
    needed = {label for t in others for label in t.labels} | set(output)
    lengths = term.lengths()
    own = sorted((label for label in term.labels if label not in needed), key=lengths.__getitem__)
    labels, values = term.labels, term.values
    for label in own:
        values = sum_(values, labels.index(label))
        labels = tuple(other for other in labels if other != label)
    return Term(labels, values)


def _aligned(term: Term, order: Labels, lift: bool = False) -> Symbolic:
    """Axes in this order; with ``lift``, of length 1 where the term has none."""
    values = term.values.transpose([term.labels.index(label) for label in order if label in term.labels])
    return values[tuple(slice(None) if label in term.labels else None for label in order)] if lift else values


def _term(labels: Labels, values: Symbolic) -> Term:
    """Repeated labels become the diagonal of their axes."""
    if len(labels) != values.ndim:
        raise ValueError(f"an operand of {values.ndim} axes has {len(labels)} subscripts")
    for label in [c for c, count in Counter(labels).items() for _ in range(count - 1)]:
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if values.shape[first] != values.shape[second]:
            raise ValueError(f"dimensions for the repeated subscript {label!r} don't match")
        values = viewed(np.diagonal, values, 0, first, second)
        labels = (*(c for i, c in enumerate(labels) if i not in (first, second)), label)
    return Term(labels, values)


def _parsed(operands: tuple) -> tuple[list[Labels], Labels, list[Symbolic]]:
    """The labels of each factor and of the result; the axes of an ellipsis are labelled by their place."""
    if not isinstance(operands[0], str):
        operands = _from_lists(operands)
    subscripts, factors = operands[0].replace(" ", ""), numbers(*operands[1:])
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(factors):
        raise ValueError(f"einsum {subscripts!r} has {len(terms)} terms for {len(factors)} operands")
    spelled = [_spelled(term, x.ndim - len(term.replace("...", ""))) for term, x in zip(terms, factors, strict=True)]
    hidden = max((sum(isinstance(c, int) for c in labels) for labels in spelled), default=0)
    if arrow:
        return spelled, _spelled(output, hidden), factors
    counts = Counter(inputs)
    once = sorted(c for c, n in counts.items() if n == 1 and c.isalpha())
    return spelled, (*range(-hidden, 0), *once), factors


def _spelled(term: str, hidden: int) -> Labels:
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise ValueError(f"invalid subscripts {term!r}: letters and one '...' are allowed")
    if hidden < 0 or (hidden and not dots):
        raise ValueError(f"operand has {'fewer' if hidden < 0 else 'more'} dimensions than subscripts in {term!r}")
    return (*before, *range(-hidden, 0), *after)


def _from_lists(operands: tuple) -> tuple:
    """NumPy's other spelling: operand, [axes], operand, [axes], ..., [axes of the result]."""

    def text(labels: Any) -> str:
        return "".join("..." if label is Ellipsis else chr(ord("A") + label + 6 * (label > 25)) for label in labels)

    pairs, rest = operands[: len(operands) // 2 * 2], operands[len(operands) // 2 * 2 :]
    subscripts = ",".join(text(labels) for labels in pairs[1::2]) + "".join("->" + text(labels) for labels in rest)
    return (subscripts, *pairs[::2])
