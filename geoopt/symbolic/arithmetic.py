"""Arithmetic on symbolic arrays: operands become arrays of one graph and one shape, then one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from ..errors import ShapeError, TracingError, UnsupportedError
from ..graph import Graph
from ..graph.tape import CODES
from ..integers.ids import Ids
from ..ops import BY_UFUNC, OPS, Op
from . import ASSIGNED, FILLABLE, UFUNCS, Symbolic, number, symbolic
from .elements import arrangement
from .repetition import is_loop

_OF_CONDITIONS = {  # what NumPy makes of two conditions
    "multiply": "logical_and", "minimum": "logical_and", "add": "logical_or", "maximum": "logical_or",
    "not_equal": "logical_xor",
}  # fmt: skip
NUMBERS = frozenset({int, float, np.float64, np.float32, np.int64, np.int32})
FEW_SCALARS = 256  # arrays so small go to the tape, number by number, where code loops over elements


def as_symbolic(graph: Graph, value: Any, on_tape: bool = False) -> Symbolic:
    """A symbolic array as it is; numbers and NumPy arrays as constants of the graph; lists as their stack.

    on_tape : record a number beside the operations on numbers, not as a node of its own
    """
    if isinstance(value, FILLABLE[0]):
        value = value.now()  # type: ignore[attr-defined]
    if isinstance(value, Symbolic):
        if value.graph is not graph:
            reject_other_trace()
        return value
    if isinstance(value, (list, tuple)) and value:
        if all(type(v) is Symbolic.number_type or isinstance(v, Number) for v in value):
            ids = _ids_of_numbers(graph, value)
            if ids is not None:
                return Symbolic(graph, Ids.explicit(ids))
        parts = [_as_condition(graph, v) if _is_bool(v) else as_symbolic(graph, v) for v in value]
        if len({p.shape for p in parts}) == 1:
            return joined(parts, lambda parts: symbolic(graph, Ids.stack([p.ids for p in parts], 0)))
        shapes = ", ".join(str(p.shape) for p in parts)
        raise ShapeError(f"a list of arrays of shapes {shapes} is no array", "give arrays of one shape, as np.stack")
    if isinstance(value, np.ma.MaskedArray):
        raise UnsupportedError("masked arrays are not supported", "write x.filled(number), and np.where for the mask")
    array = np.asarray(float(value) if type(value) is int else value)  # NumPy has no type for 10**30
    if array.dtype == object or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise UnsupportedError(
            f"cannot combine a symbolic array with {type(value).__name__} of dtype {array.dtype}",
            "use numbers, NumPy arrays of numbers, or np.stack for lists of symbolic arrays",
        )
    if np.issubdtype(array.dtype, np.complexfloating):
        raise UnsupportedError("complex numbers are not supported", "split them into real and imaginary parts")
    if array is value:  # what a library made
        FILLABLE[0].reject_hidden(array)  # type: ignore[attr-defined]
    if on_tape and not array.ndim:
        return number(graph, graph.number(float(array)))
    return symbolic(graph, graph.constant(array).ids)


def reject_other_trace() -> NoReturn:
    what = "a symbolic array, or number, of another trace was used"
    raise TracingError(what, "do not keep symbolic values between calls; return what is needed")


def _ids_of_numbers(graph: Graph, numbers: Any) -> np.ndarray | None:
    """Ids of symbolic and known numbers; None if there is a comparison among them."""
    kind = Symbolic.number_type
    if all(type(x) is kind and x._graph is graph for x in numbers):
        return np.fromiter((x._id for x in numbers), np.int64, len(numbers))
    if any(isinstance(x, Symbolic) and x._is_bool for x in numbers):
        return None
    return np.array([as_symbolic(graph, x, on_tape=True).ids.offset for x in numbers])


def graph_of(values: Iterable[Any]) -> Graph:
    """The graph of the first symbolic array among some values."""
    return next(v.graph for v in values if isinstance(v, Symbolic))


def apply(op: str, *values: Any) -> Symbolic:
    """One elementwise node over broadcast operands."""
    first = values[0]
    if type(first) is Symbolic.number_type and len(values) == 1 and not OPS[op].takes_bool:  # of which loops make many
        return number(first._graph, first._graph.record(CODES[op], first._id), OPS[op].gives_bool)
    graph = graph_of(values)
    operands = None if OPS[op].takes_bool else _floats(graph, values)
    return _by_rules(op, graph, values) if operands is None else _elementwise(op, graph, operands)


def _floats(graph: Graph, values: tuple) -> list[Symbolic] | None:
    """The operands of an operation on symbolic arrays, symbolic and known numbers; None where there are others."""
    found = []
    for value in values:
        kind = type(value)
        if kind is Symbolic or kind is Symbolic.number_type:
            if value._is_bool:
                return None
            if value._graph is not graph:
                reject_other_trace()
        elif kind not in NUMBERS:
            return None
        elif is_loop(graph) or not any(type(v) is Symbolic for v in values):
            value = number(graph, graph.number(float(value)))
        else:
            value = number(graph, graph.constant(np.asarray(float(value))).first)
        found.append(value)
    return found


def _by_rules(op: str, graph: Graph, values: tuple) -> Symbolic:
    """The same for operands of any kind, among them comparisons and lists."""
    values = tuple(as_symbolic(graph, v) if type(v) in (list, tuple) else v for v in values)
    are_numbers = is_loop(graph) or not any(np.ndim(v) for v in values)
    convert = _as_condition if OPS[op].takes_bool else as_symbolic
    operands = [convert(graph, v, are_numbers) for v in values]
    if op == "where" and any(o.dtype == bool for o in operands[1:]):
        return joined(operands[1:], lambda choices: apply("where", operands[0], *choices))
    if not OPS[op].takes_bool:
        are_conditions = all(_is_bool(v) for v in values)
        if are_conditions and op in _OF_CONDITIONS:
            return apply(_OF_CONDITIONS[op], *values)
        if are_conditions and op == "absolute":
            return operands[0].copy()
        if are_conditions and op == "equal":
            return apply("logical_not", apply("logical_xor", *values))
        if OPS[op].gives_bool or not all(o.dtype == bool for o in operands):
            operands = [as_number(o) for o in operands]
    _check_booleans(op, operands)
    return _elementwise(op, graph, operands)


def _elementwise(op: str, graph: Graph, operands: list[Symbolic]) -> Symbolic:
    shape, gives_bool = operands[0].shape, OPS[op].gives_bool
    if any(o.shape != shape for o in operands):
        try:
            shape = np.broadcast_shapes(*(o.shape for o in operands))
        except ValueError:
            shapes = " and ".join(str(o.shape) for o in operands)
            remedy = "shapes align from the right; add axes with [:, None] where they should broadcast"
            raise ShapeError(f"cannot {op} arrays of shapes {shapes}: they do not broadcast", remedy) from None
    if not shape:
        return number(graph, graph.record(CODES[op], *(o.ids.offset for o in operands)), gives_bool)
    if is_loop(graph) and prod(shape) <= FEW_SCALARS:
        first = graph.record_vector(CODES[op], [o.ids.listed(shape) for o in operands])
        return Symbolic(graph, Ids.contiguous(first, shape), gives_bool)
    views = tuple(o.ids if o.shape == shape else o.ids.broadcast_to(shape) for o in operands)
    arranged = arrangement(graph, shape, views)
    node = graph.apply(op, tuple(arranged.of(v) for v in views))
    return Symbolic(graph, arranged.undone(node.ids), gives_bool)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.dtype(bool)


def as_number(value: Symbolic) -> Symbolic:
    """A comparison as NumPy computes with it: 1 where it holds, else 0."""
    return apply("where", value, 1.0, 0.0) if value.dtype == bool else value


def joined(parts: list[Symbolic], join: Callable[[list[Symbolic]], Symbolic]) -> Symbolic:
    """One array of some: a condition if all of these are, else numbers."""
    made = join([as_number(p) for p in parts])
    return apply("not_equal", made, 0.0) if all(p.dtype == bool for p in parts) else made


def _as_condition(graph: Graph, value: Any, on_tape: bool = False) -> Symbolic:
    """Like `as_symbolic`, but a fixed mask stays a condition."""
    found = as_symbolic(graph, value, on_tape)
    if isinstance(value, Symbolic) or np.asarray(value).dtype != bool:
        return found
    return apply("not_equal", found, 0.0)


def _check_booleans(op: str, operands: list[Symbolic]) -> None:
    wants = [op != "where" or i == 0 for i in range(3)] if OPS[op].takes_bool else [False] * 3
    for operand, wanted in zip(operands, wants, strict=False):
        is_bool = operand.dtype == bool
        if is_bool and not wanted:
            raise UnsupportedError(f"{op} of a comparison is not supported", "write np.where(condition, 1.0, 0.0)")
        if wanted and not is_bool:
            raise UnsupportedError(f"{op} needs a comparison as its condition", "write x != 0 for the number x")


def reject_comparison(value: Symbolic, what: str) -> None:
    """Comparisons may only be moved and chosen by; they have no place in memory."""
    if value.dtype == bool:
        raise UnsupportedError(f"{what} of a comparison is not supported", "write np.where(condition, 1.0, 0.0)")


def _ufunc(row: Op) -> Callable:
    """What answers a ufunc. Its operands may be anything that NumPy's takes."""
    name, meaning = row.name, row.meaning
    if meaning is None:
        return (lambda x: apply(name, x)) if row.arity == 1 else (lambda x, y: apply(name, x, y))

    def answer(*operands: Any) -> Symbolic:
        graph = graph_of(operands)
        return meaning(*(as_symbolic(graph, x) for x in operands))

    return (lambda x: answer(x)) if row.arity == 1 else (lambda x, y: answer(x, y))


def _operator(method: str, op: str) -> Callable[[Symbolic, Any], Any]:
    """A method that applies an operation to arrays and numbers; NumPy's rules answer what is neither."""
    general, is_reflected = getattr(Symbolic, method), method.startswith("__r")

    def answer(self: Symbolic, other: Any) -> Any:
        kind = type(other)
        if kind is not Symbolic and kind is not Symbolic.number_type and kind not in NUMBERS:
            return general(self, other)
        return apply(op, other, self) if is_reflected else apply(op, self, other)

    answer.__name__ = method
    return answer


for _name, _op in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide")):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(Symbolic, _method, _operator(_method, _op))
UFUNCS.update({ufunc: _ufunc(row) for ufunc, row in BY_UFUNC.items()})
ASSIGNED.append(as_symbolic)
