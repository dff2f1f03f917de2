"""`Symbolic`: the array that stands in for floats while user code is traced.

A symbolic array is a view over ids (`ids.Ids`) into a graph. Whatever only moves data changes the view;
arithmetic adds one node to the graph. NumPy's protocols route ``np.sqrt(x)`` and ``np.cross(x, y)`` here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse

from .errors import BranchError, ShapeError, TracingError, UnsupportedError, user_line
from .graph import Graph
from .ids import Ids
from .ops import BY_UFUNC, OPS
from .tape import CODES

MANY_NODES = 1000  # code that has made so many nodes loops in Python over elements ...
FEW_SCALARS = 16  # ... and its short vectors go to the tape, number by number

# filled by the files that implement them, which lie above this one
FUNCTIONS: dict[Callable, Callable] = {}
UFUNCS: dict[np.ufunc, Callable] = {}
SPARSE_PRODUCT: list[Callable] = []


class Symbolic:
    """An array of unknown numbers with known structure. Read it with NumPy's own functions."""

    __slots__ = ("_graph", "_ids", "_is_bool")
    __array_priority__ = 1000.0
    number_type: type[Symbolic]  # the type of arrays without axes

    def __init__(self, graph: Graph, ids: Ids, is_bool: bool = False):
        self._graph = graph
        self._ids = ids
        self._is_bool = is_bool

    # -- structure, known while tracing -------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ids.shape

    @property
    def ndim(self) -> int:
        return self.ids.ndim

    @property
    def size(self) -> int:
        return self.ids.size

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(bool) if self._is_bool else np.dtype(np.float64)

    @property
    def T(self) -> Symbolic:
        return self.transpose()

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def ids(self) -> Ids:
        return self._ids

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a scalar")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Symbolic(shape={self.shape})"

    def view(self, ids: Ids) -> Symbolic:
        """Other ids of the same graph."""
        return symbolic(self._graph, ids, self._is_bool)

    # -- moving data: never a node --------------------------------------------------------------------

    def __getitem__(self, key: object) -> Symbolic:
        element = self.ids.element(key)
        if element is not None:
            return symbolic(self._graph, element, self._is_bool)
        if any(isinstance(k, Symbolic) for k in (key if isinstance(key, tuple) else (key,))):
            raise TracingError(
                "cannot index with a symbolic value: structure must be known while tracing",
                "index with integers or boolean arrays; choose between values with np.where",
            )
        try:
            return self.view(self.ids[key])
        except IndexError as error:
            raise IndexError(f"{error}\n  at {user_line()}") from None

    def __setitem__(self, key: object, value: object) -> None:
        raise UnsupportedError(
            "in-place assignment to a symbolic array is not supported yet",
            "build the array with np.stack, np.concatenate or np.where",
        )

    def reshape(self, *lengths: Any) -> Symbolic:
        shape = lengths[0] if len(lengths) == 1 and isinstance(lengths[0], (tuple, list)) else lengths
        known = int(np.prod([s for s in shape if s != -1], dtype=np.int64))
        shape = tuple(self.size // max(known, 1) if s == -1 else int(s) for s in shape)
        if int(np.prod(shape, dtype=np.int64)) != self.size:
            raise ShapeError(f"cannot reshape {self.shape} into {shape}", "give a shape with as many elements")
        return self.view(self.ids.reshape(shape))

    def ravel(self) -> Symbolic:
        return self.reshape(-1)

    flatten = ravel

    def copy(self) -> Symbolic:
        return self

    def transpose(self, *order_of_axes: Any) -> Symbolic:
        listed = len(order_of_axes) == 1 and isinstance(order_of_axes[0], (tuple, list))
        axes = order_of_axes[0] if listed else order_of_axes
        order = tuple(a % self.ndim for a in axes) if axes and axes[0] is not None else range(self.ndim)[::-1]
        return self.view(self.ids.transpose(tuple(order)))

    def squeeze(self, axis: Any = None) -> Symbolic:
        drop = range(self.ndim) if axis is None else np.atleast_1d(axis) % self.ndim
        return self[tuple(0 if a in drop and n == 1 else slice(None) for a, n in enumerate(self.shape))]

    def astype(self, dtype: Any, **_: Any) -> Symbolic:
        if not np.issubdtype(np.dtype(dtype), np.floating):
            raise UnsupportedError(f"cannot convert unknown values to {np.dtype(dtype)}", "keep them floating-point")
        return self

    # -- reductions and products, by NumPy's names ------------------------------------------------------

    def sum(self, axis: Any = None, keepdims: bool = False) -> Symbolic:
        return np.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Symbolic:
        return np.mean(self, axis=axis, keepdims=keepdims)

    def dot(self, other: Any) -> Symbolic:
        return np.dot(self, other)

    # -- what has no meaning before the values are known ------------------------------------------------

    def __bool__(self) -> bool:
        raise BranchError("branch on a symbolic value")

    def __float__(self) -> float:
        raise BranchError("convert a symbolic value to float")

    def __int__(self) -> int:
        raise BranchError("convert a symbolic value to int")

    __index__ = None  # type: ignore[assignment]  # so that range(x) and x as an index fail with Python's own message

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("scipy.sparse"):
            # how SciPy finds out, in A @ x, that x knows better
            nothing = np.empty((), object)
            nothing[()] = self
            return nothing
        raise TracingError(
            "cannot turn a symbolic array into a NumPy array: its values are unknown while tracing",
            "use NumPy functions that accept it; in-place fills of NumPy arrays become np.stack or np.concatenate",
        )

    __hash__ = None  # type: ignore[assignment]

    # -- arithmetic: one node each ----------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method != "__call__" or kwargs or out is not None:
            return _reject_ufunc(ufunc, method, kwargs, out)
        if ufunc in UFUNCS:
            return UFUNCS[ufunc](*inputs)
        if ufunc in BY_UFUNC:
            row = BY_UFUNC[ufunc]
            return apply(row.name, *inputs) if row.meaning is None else row.meaning(*inputs)
        raise UnsupportedError(
            f"np.{ufunc.__name__} is not supported on symbolic arrays",
            "write it with the supported operations: " + ", ".join(OPS),
        )

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        if function not in FUNCTIONS:
            raise UnsupportedError(
                f"{name} is not supported on symbolic arrays",
                "use indexing and: " + ", ".join(sorted(f.__name__ for f in FUNCTIONS)),
            )
        try:
            inspect.signature(FUNCTIONS[function]).bind(*args, **kwargs)
        except TypeError as error:
            raise UnsupportedError(f"{name}: {error} on symbolic arrays", "leave that argument out") from None
        return FUNCTIONS[function](*args, **kwargs)

    def __add__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary("divide", other, self)

    def __pow__(self, other: Any) -> Any:
        return np.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return np.power(other, self)

    def __and__(self, other: Any) -> Any:
        return _binary("logical_and", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return _binary("logical_or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return _binary("logical_xor", self, other)

    __rxor__ = __xor__

    def __invert__(self) -> Symbolic:
        return apply("logical_not", self)

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        if scipy.sparse.issparse(other):
            return SPARSE_PRODUCT[0](other, self)
        return np.matmul(other, self)

    def __lt__(self, other: Any) -> Any:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _binary("greater_equal", self, other)

    def __eq__(self, other: Any) -> Any:
        return _binary("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        return _binary("not_equal", self, other)

    def __neg__(self) -> Symbolic:
        return apply("negative", self)

    def __pos__(self) -> Symbolic:
        return self

    def __abs__(self) -> Symbolic:
        return apply("absolute", self)


def symbolic(graph: Graph, ids: Ids, is_bool: bool = False) -> Symbolic:
    """A symbolic array, or a number where there are no axes."""
    kind = Symbolic if ids.shape else Symbolic.number_type
    return kind(graph, ids, is_bool)


def _binary(op: str, left: Any, right: Any) -> Any:
    known = (Symbolic, np.ndarray, np.generic, Number, list, tuple)
    if not isinstance(left, known) or not isinstance(right, known):
        return NotImplemented
    return apply(op, left, right)


def _reject_ufunc(ufunc: np.ufunc, method: str, kwargs: dict, out: Any) -> Any:
    if out is not None:
        what = f"np.{ufunc.__name__} with out=, or an in-place update of a NumPy array by a symbolic one,"
        raise UnsupportedError(f"{what} is not supported", "write x = x + y instead of x += y")
    what = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else f" with {', '.join(kwargs)}")
    raise UnsupportedError(f"{what} is not supported on symbolic arrays", "use the plain function")


def as_symbolic(graph: Graph, value: Any, on_tape: bool = False) -> Symbolic:
    """A symbolic array as it is; numbers and NumPy arrays as constants of the graph; lists as their stack.

    on_tape : record a number beside the operations on numbers, not as a node of its own
    """
    if isinstance(value, Symbolic):
        if value.graph is not graph:
            raise TracingError(
                "a symbolic array of another trace was used",
                "do not keep symbolic arrays between calls; return what is needed",
            )
        return value
    if isinstance(value, (list, tuple)) and value:
        if all(type(v) is Symbolic.number_type or isinstance(v, Number) for v in value):
            return Symbolic(graph, Ids.explicit(_ids_of_numbers(graph, value)))
        parts = [as_symbolic(graph, v) for v in value]
        for part in parts:
            reject_comparison(part, "a list")
        if len({p.shape for p in parts}) == 1:
            return symbolic(graph, Ids.stack([p.ids for p in parts], 0))
    array = np.asarray(value)
    if array.dtype == object or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise UnsupportedError(
            f"cannot combine a symbolic array with {type(value).__name__} of dtype {array.dtype}",
            "use numbers, NumPy arrays of numbers, or np.stack for lists of symbolic arrays",
        )
    if np.issubdtype(array.dtype, np.complexfloating):
        raise UnsupportedError("complex numbers are not supported", "split them into real and imaginary parts")
    if on_tape and not array.ndim:
        return symbolic(graph, Ids((), graph.number(float(array)), ()))
    return symbolic(graph, graph.constant(array).ids)


def _ids_of_numbers(graph: Graph, numbers: Any) -> np.ndarray:
    """Ids of symbolic and known numbers."""
    ids = np.empty(len(numbers), np.int64)
    for i, x in enumerate(numbers):
        if isinstance(x, Symbolic):
            reject_comparison(x, "a list")
        ids[i] = as_symbolic(graph, x, on_tape=True).ids.offset
    return ids


def graph_of(*values: Any) -> Graph:
    """The graph of the first symbolic array among some values."""
    return next(v.graph for v in values if isinstance(v, Symbolic))


def apply(op: str, *values: Any) -> Symbolic:
    """One elementwise node over broadcast operands."""
    graph = graph_of(*values)
    are_numbers = len(graph.nodes) > MANY_NODES or not any(np.ndim(v) for v in values)
    convert = _as_condition if OPS[op].takes_bool else as_symbolic
    operands = [convert(graph, v, are_numbers) for v in values]
    _check_booleans(op, operands)
    try:
        shape = np.broadcast_shapes(*(o.shape for o in operands))
    except ValueError:
        shapes = " and ".join(str(o.shape) for o in operands)
        remedy = "shapes align from the right; add axes with [:, None] where they should broadcast"
        raise ShapeError(f"cannot {op} arrays of shapes {shapes}: they do not broadcast", remedy) from None
    if not shape:
        made = graph.record(CODES[op], *(o.ids.offset for o in operands))
        return symbolic(graph, Ids((), made, ()), OPS[op].gives_bool)
    views = tuple(o.ids if o.shape == shape else o.ids.broadcast_to(shape) for o in operands)
    if len(graph.nodes) > MANY_NODES and int(np.prod(shape)) <= FEW_SCALARS:
        columns = zip(*(v.to_array().ravel().tolist() for v in views), strict=True)
        made = [graph.record(CODES[op], *column) for column in columns]
        return Symbolic(graph, Ids.contiguous(made[0] if made else 0, shape), OPS[op].gives_bool)
    node = graph.apply(op, views)
    return Symbolic(graph, node.ids, OPS[op].gives_bool)


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
            raise UnsupportedError(f"{op} of a comparison is not supported", "comparisons may only go into np.where")
        if wanted and not is_bool:
            raise UnsupportedError(f"{op} needs a comparison as its condition", "write x != 0 for the number x")


def reject_comparison(value: Symbolic, what: str) -> None:
    """Comparisons may only be moved and chosen by; they have no place in memory."""
    if value.dtype == bool:
        raise UnsupportedError(f"{what} of a comparison is not supported", "write np.where(condition, 1.0, 0.0)")
