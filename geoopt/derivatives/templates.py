"""Derivatives of one expression of a template by its leaves, exact in what is zero.

The gradient is found in reverse mode, the Hessian in forward mode over the gradient: leaf by leaf, only below the
diagonal, and only where something depends on both leaves. Where all leaves go through fewer numbers that are affine in
them, as the corners of an element do through its deformation J, it is found by these and put together as Bᵀ H B.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..ops import BY_UFUNC, OPS
from ..template import Expression, Template, bottom_up, replaced
from .chain import Adjoint, known, passed_on, product, pushed, total

WAIST = 1 << 40  # leaves that stand in for expressions are numbered from here
Gradient = dict[int, Expression]  # by leaf; leaves that nothing depends on are missing
Hessian = dict[tuple[int, int], Expression]  # by leaves (k, l) with k >= l in the order given; zeros are missing


class Value(NDArrayOperatorsMixin):
    """An expression that answers NumPy's functions, as the rows of `ops.OPS` use them."""

    __slots__ = ("expression", "template")

    def __init__(self, template: Template, expression: Expression):
        self.template, self.expression = template, expression

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:
        row = BY_UFUNC[ufunc]
        return row.meaning(*inputs) if row.meaning else self._made(row.name, inputs)

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        return self._made(function.__name__, args)

    def _made(self, op: str, inputs: tuple) -> Any:
        """The operation, left out where it does nothing; a number where all operands are."""
        numbers = [known(x) for x in inputs]
        if all(n is not None for n in numbers):
            with np.errstate(all="ignore"):
                return OPS[op].numpy(*numbers)
        if op in _NEUTRAL and numbers[1] == _NEUTRAL[op]:
            return inputs[0]
        if op in ("add", "multiply") and numbers[0] == _NEUTRAL[op]:
            return inputs[1]
        return Value(self.template, self.template.make(op, tuple(as_expression(self.template, x) for x in inputs)))


_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}  # second operands that change nothing


@known.register
def _(value: Value) -> float | None:
    e = value.expression
    return float(e.value) if e.op == "constant" else None  # type: ignore[arg-type]


def as_expression(template: Template, value: Any) -> Expression:
    return value.expression if isinstance(value, Value) else template.make("constant", (), float(value))


def gradient(template: Template, root: Expression, leaves: list[int]) -> Gradient:
    """Derivatives of an expression by some leaves."""
    found = _adjoints(template, root, set(leaves))
    return {k: as_expression(template, v) for k, v in found.items()}


def _adjoints(template: Template, root: Expression, leaves: set[int]) -> dict[int, Any]:
    order = list(bottom_up([root]))
    active = _dependent(order, leaves)
    waiting: dict[int, list[Adjoint]] = {id(root): [Adjoint(1.0)]}
    found: dict[int, Any] = {}
    for e in reversed(order):
        if id(e) not in active or id(e) not in waiting:
            continue
        adjoint = total(waiting.pop(id(e)))
        if e.op == "leaf":
            found[int(e.value)] = adjoint.chosen()  # type: ignore[arg-type]
            continue
        operands = [Value(template, a) for a in e.args]
        for a, part in zip(e.args, passed_on(e.op, adjoint, Value(template, e), operands), strict=True):
            if part is not None and id(a) in active:
                waiting.setdefault(id(a), []).append(part)
    return found


def _dependent(order: list[Expression], leaves: set[int]) -> set[int]:
    """The expressions (by identity) that depend on some leaves. order : arguments first."""
    active: set[int] = set()
    for e in order:
        if e.value in leaves if e.op == "leaf" else any(id(a) in active for a in e.args):
            active.add(id(e))
    return active


def hessian(template: Template, root: Expression, leaves: list[int]) -> Hessian:
    """Second derivatives of an expression by some leaves; each symmetric pair once."""
    waist = _waist(root, set(leaves))
    if len(waist) >= len(leaves):
        return _hessian_of_leaves(template, root, leaves)
    numbers = range(WAIST, WAIST + len(waist))
    stand_ins = [template.make("leaf", (), number) for number in numbers]
    [narrow] = replaced([root], template, {id(e): leaf for e, leaf in zip(waist, stand_ins, strict=True)})
    inner = _hessian_of_leaves(template, narrow, list(numbers))
    found = _through(template, waist, inner, leaves)
    originals = {id(leaf): e for leaf, e in zip(stand_ins, waist, strict=True)}
    return dict(zip(found, replaced(list(found.values()), template, originals), strict=True))


def _waist(root: Expression, leaves: set[int]) -> list[Expression]:
    """What is affine in the leaves and used otherwise."""
    order = list(bottom_up([root]))
    active = _dependent(order, leaves)
    affine: set[int] = set()
    ends: dict[int, Expression] = {}
    for e in (e for e in order if id(e) in active):
        varying = [a for a in e.args if id(a) in active]
        if all(id(a) in affine for a in varying) and _is_affine(e, varying):
            affine.add(id(e))
        else:
            ends |= {id(a): a for a in varying if id(a) in affine}
    return [root] if id(root) in affine else list(ends.values())


def _is_affine(e: Expression, varying: list[Expression]) -> bool:
    """Whether an expression is affine in those of its operands that vary."""
    if e.op == "multiply":
        return len(varying) == 1 and e.args[0] is not e.args[1]
    if e.op == "divide":
        return varying == [e.args[0]]
    return e.op in ("leaf", "add", "subtract", "negative")


def _through(template: Template, waist: list[Expression], inner: Hessian, leaves: list[int]) -> Hessian:
    """Bᵀ H B for the second derivatives H by what is in the waist, and the derivatives B of that by the leaves."""
    B = [{k: Value(template, v) for k, v in gradient(template, e, leaves).items()} for e in waist]
    H = {(n - WAIST, m - WAIST): Value(template, v) for (n, m), v in inner.items()}
    H |= {(m, n): v for (n, m), v in H.items()}
    found: Hessian = {}
    for i, leaf in enumerate(leaves):
        column = {
            n: _total(product(H[n, m], B[m][leaf]) for m in range(len(waist)) if leaf in B[m] and (n, m) in H)
            for n in range(len(waist))
        }
        for other in leaves[i:]:
            parts = (product(v, B[n][other]) for n, v in column.items() if v is not None and other in B[n])
            if (entry := _total(parts)) is not None:
                found[other, leaf] = as_expression(template, entry)
    return found


def _total(parts: Iterable[Any]) -> Any:
    """The sum of what there is; None for nothing."""
    there = [p for p in parts if p is not None]
    return reduce(np.add, there) if there else None


def _hessian_of_leaves(template: Template, root: Expression, leaves: list[int]) -> Hessian:
    slopes = gradient(template, root, leaves)
    found: Hessian = {}
    for i, leaf in enumerate(leaves):
        rows = [k for k in leaves[i:] if k in slopes]
        tangents = _tangents(template, [slopes[k] for k in rows], leaf)
        for k in rows:
            tangent = tangents.get(id(slopes[k]))
            if tangent is not None and known(tangent) != 0:
                found[k, leaf] = as_expression(template, tangent)
    return found


def _tangents(template: Template, roots: list[Expression], leaf: int) -> dict[int, Any]:
    """Derivatives by one leaf of all expressions below some roots, by identity; zeros are missing."""
    tangents: dict[int, Any] = {}
    for e in bottom_up(roots):
        if e.op == "leaf" and e.value == leaf:
            tangents[id(e)] = 1.0
        elif any(id(a) in tangents for a in e.args):
            operands = [Value(template, a) for a in e.args]
            tangent = pushed(e.op, [tangents.get(id(a)) for a in e.args], Value(template, e), operands)
            if tangent is not None:
                tangents[id(e)] = tangent
    return tangents
