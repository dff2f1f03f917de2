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
from .graph import Graph, Node
from .ids import Ids
from .ops import BY_UFUNC, OPS

UNROLLED_SUM = 16  # sums over at most this many entries of a fixed axis become chains of additions
LANES_OF_LONG_SUM = 1024  # partial sums of a reduction over many elements; fixed, so that its bits are too

# filled by the files that implement them, which lie above this one
FUNCTIONS: dict[Callable, Callable] = {}
UFUNCS: dict[np.ufunc, Callable] = {}
UFUNC_METHODS: dict[tuple[np.ufunc, str], Callable] = {}
SPARSE_PRODUCT: list[Callable] = []


def _method(function: Callable) -> Callable[..., Symbolic]:
    """NumPy's function as the method of the same name, which takes the same arguments."""
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


class Symbolic:
    """An array of unknown numbers with known structure. Read it with NumPy's own functions."""

    __slots__ = ("_graph", "_ids", "_is_bool")
    __array_priority__ = 1000.0

    def __init__(self, graph: Graph, ids: Ids, is_bool: bool = False):
        self._graph = graph
        self._ids = ids
        self._is_bool = is_bool

    # -- structure, known while tracing -------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._ids.shape

    @property
    def ndim(self) -> int:
        return self._ids.ndim

    @property
    def size(self) -> int:
        return self._ids.size

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
        return Symbolic(self._graph, ids, self._is_bool)

    # -- moving data: never a node --------------------------------------------------------------------

    def __getitem__(self, key: object) -> Symbolic:
        if any(isinstance(k, Symbolic) for k in (key if isinstance(key, tuple) else (key,))):
            raise TracingError(
                "cannot index with a symbolic value: structure must be known while tracing",
                "index with integers or boolean arrays; choose between values with np.where",
            )
        try:
            return self.view(self._ids[key])
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
        return self.view(self._ids.reshape(shape))

    def ravel(self) -> Symbolic:
        return self.reshape(-1)

    flatten = ravel

    def copy(self) -> Symbolic:
        return self

    def transpose(self, *order_of_axes: Any) -> Symbolic:
        listed = len(order_of_axes) == 1 and isinstance(order_of_axes[0], (tuple, list))
        axes = order_of_axes[0] if listed else order_of_axes
        order = tuple(a % self.ndim for a in axes) if axes and axes[0] is not None else range(self.ndim)[::-1]
        return self.view(self._ids.transpose(tuple(order)))

    def squeeze(self, axis: Any = None) -> Symbolic:
        drop = range(self.ndim) if axis is None else np.atleast_1d(axis) % self.ndim
        return self[tuple(0 if a in drop and n == 1 else slice(None) for a, n in enumerate(self.shape))]

    def astype(self, dtype: Any, **_: Any) -> Symbolic:
        if not np.issubdtype(np.dtype(dtype), np.floating):
            raise UnsupportedError(f"cannot convert unknown values to {np.dtype(dtype)}", "keep them floating-point")
        return self

    # -- reductions and products, by NumPy's names ------------------------------------------------------

    sum, mean, var, std = (_method(f) for f in (np.sum, np.mean, np.var, np.std))
    prod, cumsum, cumprod = (_method(f) for f in (np.prod, np.cumsum, np.cumprod))
    max, min, clip, dot = (_method(f) for f in (np.max, np.min, np.clip, np.dot))
    take, repeat, swapaxes = (_method(f) for f in (np.take, np.repeat, np.swapaxes))
    diagonal, trace, conj = (_method(f) for f in (np.diagonal, np.trace, np.conj))
    real = property(np.real)

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
        if out is None and (ufunc, method) in UFUNC_METHODS:
            return UFUNC_METHODS[ufunc, method](*inputs, **kwargs)
        if method != "__call__" or kwargs or out is not None:
            return _reject_ufunc(ufunc, method, kwargs, out)
        if ufunc in BY_UFUNC:
            return apply(BY_UFUNC[ufunc].name, *inputs)
        if ufunc in UFUNCS:
            return UFUNCS[ufunc](*inputs)
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


def as_symbolic(graph: Graph, value: Any) -> Symbolic:
    """A symbolic array as it is; numbers and NumPy arrays as constants of the graph; lists as their stack."""
    if isinstance(value, Symbolic):
        if value.graph is not graph:
            raise TracingError(
                "a symbolic array of another trace was used",
                "do not keep symbolic arrays between calls; return what is needed",
            )
        return value
    if isinstance(value, (list, tuple)) and value:
        parts = [as_symbolic(graph, v) for v in value]
        for part in parts:
            reject_comparison(part, "a list")
        if len({p.shape for p in parts}) == 1:
            return Symbolic(graph, Ids.stack([p.ids for p in parts], 0))
    array = np.asarray(value)
    if array.dtype == object or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise UnsupportedError(
            f"cannot combine a symbolic array with {type(value).__name__} of dtype {array.dtype}",
            "use numbers, NumPy arrays of numbers, or np.stack for lists of symbolic arrays",
        )
    if np.issubdtype(array.dtype, np.complexfloating):
        raise UnsupportedError("complex numbers are not supported", "split them into real and imaginary parts")
    return Symbolic(graph, graph.constant(array).ids)


def graph_of(*values: Any) -> Graph:
    """The graph of the first symbolic array among some values."""
    return next(v.graph for v in values if isinstance(v, Symbolic))


def apply(op: str, *values: Any) -> Symbolic:
    """One elementwise node over broadcast operands."""
    graph = graph_of(*values)
    operands = [as_symbolic(graph, v) for v in values]
    _check_booleans(op, operands)
    try:
        shape = np.broadcast_shapes(*(o.shape for o in operands))
    except ValueError:
        shapes = " and ".join(str(o.shape) for o in operands)
        remedy = "shapes align from the right; add axes with [:, None] where they should broadcast"
        raise ShapeError(f"cannot {op} arrays of shapes {shapes}: they do not broadcast", remedy) from None
    views = tuple(o.ids if o.shape == shape else o.ids.broadcast_to(shape) for o in operands)
    node = graph.apply(op, views)
    return Symbolic(graph, node.ids, OPS[op].gives_bool)


def _check_booleans(op: str, operands: list[Symbolic]) -> None:
    allowed = [i == 0 for i in range(3)] if op == "where" else [False] * 3
    for operand, may in zip(operands, allowed, strict=False):
        if operand.dtype == bool and not may:
            raise UnsupportedError(f"{op} of a comparison is not supported", "comparisons may only go into np.where")
    if op == "where" and operands[0].dtype != bool:
        raise UnsupportedError("np.where needs a comparison as its condition", "write np.where(x != 0, a, b)")


def reject_comparison(value: Symbolic, what: str) -> None:
    """Comparisons may only be moved and chosen by; they have no place in memory."""
    if value.dtype == bool:
        raise UnsupportedError(f"{what} of a comparison is not supported", "write np.where(condition, 1.0, 0.0)")


def segment_sum(values: Symbolic, offsets: np.ndarray) -> Symbolic:
    """Sums of consecutive entries: ``out[s] = values[offsets[s]:offsets[s + 1]].sum()``.

    values : (k,);  offsets : (n + 1,) integers, non-decreasing, from 0 to k.
    Returns (n,). An empty segment is 0.
    """
    reject_comparison(values, "a sum")
    node: Node = values.graph.segment_sum(values.ids, np.asarray(offsets))
    return Symbolic(values.graph, node.ids)


def sum_last_axis(x: Symbolic) -> Symbolic:
    """Sum over the last axis: unrolled when short; in a fixed two-level order when long."""
    length = x.shape[-1]
    if length == 0:
        return as_symbolic(x.graph, np.zeros(x.shape[:-1]))
    if length <= UNROLLED_SUM:
        total = x[..., 0]
        for i in range(1, length):
            total = apply("add", total, x[..., i])
        return total
    rows, terms = x.size // length, length
    if length > 2 * LANES_OF_LONG_SUM:
        terms = -(-length // LANES_OF_LONG_SUM)
        whole = (length // terms) * terms
        # lane j sums the entries j, j + lanes, ...: neighbouring lanes read neighbouring entries
        lanes = x[..., :whole].reshape(*x.shape[:-1], terms, whole // terms)
        partial = _rows_summed(lanes.transpose(*range(x.ndim - 1), x.ndim, x.ndim - 1))
        rest = x[..., whole:]
        both = x.view(Ids.concatenate([partial.ids, rest.ids], axis=x.ndim - 1)) if rest.size else partial
        return _rows_summed(both)
    return _rows_summed(x) if rows else x[..., 0]


def _rows_summed(x: Symbolic) -> Symbolic:
    length = x.shape[-1]
    offsets = np.arange(x.size // length + 1, dtype=np.int64) * length
    return segment_sum(x.ravel(), offsets).reshape(x.shape[:-1])
