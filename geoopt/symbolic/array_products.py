"""NumPy's products that sum: einsum, and what can be said through it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from . import Symbolic
from .array_moving import stack, viewed
from .array_sums import sum_
from .dispatch import implements, implements_method, numbers, one_axis
from .sums import in_memory

Labels = tuple[Hashable, ...]  # one for each axis


@dataclass(frozen=True, eq=False)
class Term:
    """A factor of a product, with its axes labelled; no label twice."""

    labels: Labels
    values: Symbolic

    def lengths(self) -> dict[Hashable, int]:
        return dict(zip(self.labels, self.values.shape, strict=True))


# -- einsum -----------------------------------------------------------------------------------------


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


# -- products of matrices and vectors ---------------------------------------------------------------


@implements(np.matmul)
def matmul(x: Any, y: Any) -> Symbolic:
    x, y = numbers(x, y)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ShapeError(f"cannot multiply matrices of shapes {x.shape} and {y.shape}", "inner sizes must agree")
    x = in_memory(x)
    y = y if y.ndim == 1 else in_memory(y.T).T if y.ndim == 2 else y
    if y.ndim == 1:
        return sum_(x * y, -1)
    if x.ndim == 1:
        return sum_(x[:, None] * y, -2)
    if x.ndim == y.ndim == 2:  # any of the axes may be the long one
        return contracted([Term(("i", "j"), x), Term(("j", "k"), y)], ("i", "k"))
    return sum_(x[..., :, :, None] * y[..., None, :, :], -2)


@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any) -> Symbolic:
    return matmul(x1, x2)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Symbolic:
    a, b = numbers(a, b)
    if isinstance(axes, (int, np.integer)):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    pairs = [np.atleast_1d(side) for side in axes]
    left, right = ([one_axis(int(i), x.ndim) for i in side] for side, x in zip(pairs, (a, b), strict=True))
    if len(left) != len(right) or any(a.shape[i] != b.shape[j] for i, j in zip(left, right, strict=False)):
        raise ValueError("shape-mismatch for sum")
    labels = [("b", i) for i in range(b.ndim)]
    for i, j in zip(left, right, strict=True):
        labels[j] = ("a", i)
    names = [("a", i) for i in range(a.ndim)]
    output = (*(n for i, n in enumerate(names) if i not in left), *(n for n in labels if n[0] == "b"))
    return contracted([Term(tuple(names), a), Term(tuple(labels), b)], output)


@implements(np.linalg.tensordot)
def linalg_tensordot(x1: Any, x2: Any, axes: Any = 2) -> Symbolic:
    return tensordot(x1, x2, axes)


@implements(np.dot)
def dot(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return matmul(a, b) if a.ndim <= 2 and b.ndim <= 2 else tensordot(a, b, (-1, -2 if b.ndim > 1 else 0))


@implements(np.inner)
def inner(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, (-1, -1))


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    return matmul(a.ravel(), b.ravel())


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, axis: int = -1) -> Symbolic:
    first, second = (viewed(np.moveaxis, x, axis, -1) for x in numbers(x1, x2))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"vectors of {first.shape[-1]} and {second.shape[-1]} entries")
    return sum_(first * second, -1)


@implements_method("__call__", np.vecdot)
def vecdot(ufunc: np.ufunc, x1: Any, x2: Any, axis: int = -1) -> Symbolic:
    return linalg_vecdot(x1, x2, axis)


def matvec(ufunc: np.ufunc, x1: Any, x2: Any) -> Symbolic:
    a, x = numbers(x1, x2)
    return matmul(a, x[..., None])[..., 0]


def vecmat(ufunc: np.ufunc, x1: Any, x2: Any) -> Symbolic:
    x, a = numbers(x1, x2)
    return matmul(x[..., None, :], a)[..., 0, :]


for _ours in (matvec, vecmat):
    if hasattr(np, _ours.__name__):  # from NumPy 2.2 on
        implements_method("__call__", getattr(np, _ours.__name__))(_ours)


@implements(np.outer)
def outer(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    return a.ravel()[:, None] * b.ravel()[None, :]


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any) -> Symbolic:
    x1, x2 = numbers(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"input arrays must be one-dimensional, but they are {x1.ndim} and {x2.ndim}-dimensional")
    return outer(x1, x2)


@implements(np.kron)
def kron(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    n = max(a.ndim, b.ndim)
    a, b = (x.reshape((1,) * (n - x.ndim) + x.shape) for x in (a, b))
    apart = a[tuple(k for _ in range(n) for k in (slice(None), None))]
    blocks = apart * b[tuple(k for _ in range(n) for k in (None, slice(None)))]
    return blocks.reshape(tuple(i * j for i, j in zip(a.shape, b.shape, strict=True)))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Symbolic:
    a, b = numbers(a, b)
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = (x if i in (-1, x.ndim - 1) else viewed(np.moveaxis, x, i, -1) for x, i in ((a, axisa), (b, axisb)))
    sizes = (a.shape[-1], b.shape[-1])
    if not set(sizes) <= {2, 3}:
        raise ValueError(f"incompatible vector sizes for cross product (must be 2 or 3): {sizes}")
    if sizes == (2, 2):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a, b = (x if x.shape[-1] == 3 else _in_space(x) for x in (a, b))
    following, preceding = [1, 2, 0], [2, 0, 1]
    result = a[..., following] * b[..., preceding] - a[..., preceding] * b[..., following]
    return result if axisc in (-1, result.ndim - 1) else viewed(np.moveaxis, result, -1, axisc)


def _in_space(x: Symbolic) -> Symbolic:
    """Vectors of the plane with a third coordinate of 0."""
    zero = numbers(x, np.zeros(x.shape[:-1]))[1]
    return stack([x[..., 0], x[..., 1], zero], -1)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, axis: int = -1) -> Symbolic:
    x1, x2 = numbers(x1, x2)
    if x1.shape[one_axis(axis, x1.ndim)] != 3 or x2.shape[one_axis(axis, x2.ndim)] != 3:
        raise ValueError("both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbolic:
    return sum_(viewed(np.diagonal, a, offset, axis1, axis2), -1)


@implements(np.linalg.trace)
def linalg_trace(x: Any, offset: int = 0) -> Symbolic:
    return trace(x, offset, -2, -1)
