"""SciPy's constructors, and ``multiply`` of known matrices, answered where they are given symbolic values.

The classes (`csr_matrix`, `coo_array`, ...) and the functions (`diags`, `kron`, ...) are asked wherever traced code
calls them, under whatever name it has imported them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import TracingError, UnsupportedError
from ..remedies import SCIPY
from ..symbolic import Symbolic
from ..symbolic.dispatch import all_symbolic, flattened, is_symbolic
from ..symbolic.fillable import resolved
from . import as_matrices, block_array, from_triplets, of_dense, triplets
from .building import FILLED, filling
from .forms import FORMATS, ORDERS, are_sorted, kind_of, order_of
from .matrix import SparseMatrix, constant

TRACING = threading.local()  # depth: how many functions are being traced in this thread
_CLASSES = [getattr(sp, f"{name}_{kind}") for name in FORMATS for kind in ("array", "matrix")]


def answer_classes() -> None:
    """Let SciPy's classes make symbolic matrices of symbolic values; what they are given otherwise goes its usual way.

    This stays: a class whose ``__new__`` was replaced cannot be put back into its first state.
    """
    for kind in _CLASSES:
        if getattr(kind.__new__, "__module__", "") != __name__:
            kind.multiply = _with_symbolic(kind.multiply, SparseMatrix.multiply)
            kind._add_dense = _with_symbolic(kind._add_dense, SparseMatrix.__add__)
            if kind in FILLED:
                kind.__setitem__ = filling(kind.__setitem__)
            kind.__new__ = _constructor(kind.__new__, kind.__name__[:3])  # the last: it tells that all is done


def _constructor(before: Callable, name: str) -> Any:
    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("arg1")
        given = resolved(given) if getattr(TRACING, "depth", 0) else None
        parts = given if type(given) is tuple else (given,)
        if any(isinstance(p, SparseMatrix) or is_symbolic(p) for p in parts):
            call = inspect.signature(lambda arg1, shape=None, dtype=None, copy=False, **_: None)
            return _made(cls, name, given, call.bind(given, *args[1:], **kwargs).arguments)
        return before(cls) if before is object.__new__ else before(cls, *args, **kwargs)

    return __new__


def _with_symbolic(before: Callable, ours: Callable) -> Any:
    """A method of a matrix of SciPy's, for a symbolic operand as well."""

    def method(self: Any, other: Any) -> Any:
        given = resolved(other) if getattr(TRACING, "depth", 0) else None
        if isinstance(given, (Symbolic, SparseMatrix)):
            return ours(constant(given.graph, self), given)
        return before(self, other)

    return method


def _made(cls: type, name: str, given: Any, call: dict) -> SparseMatrix:
    dtype, shape = call.get("dtype"), call.get("shape")
    if dtype is not None and not np.issubdtype(np.dtype(dtype), np.floating):
        raise UnsupportedError(f"{cls.__name__} of symbolic values with dtype {np.dtype(dtype)}", "leave it out")
    if isinstance(given, SparseMatrix):
        made = given.asformat(name, copy=True)
    elif isinstance(given, Symbolic):
        made = _of_dense(given, shape).as_form(name, ORDERS.get(name))
    else:
        made = _of_arrays(name, given, shape)
    return made.as_form(name, made.order, sp.sparray if issubclass(cls, sp.sparray) else sp.spmatrix)


def _of_dense(given: Symbolic, shape: Any) -> SparseMatrix:
    if given.ndim != 2 or (shape is not None and tuple(shape) != given.shape):
        raise TracingError(*SCIPY)
    return of_dense(given)


def _of_arrays(name: str, given: tuple, shape: Any) -> SparseMatrix:
    """The matrix of SciPy's tuples of arrays."""
    if name == "dia" and len(given) == 2:
        return _of_diagonals(*given, shape).as_form(name, None)
    if name in ("csr", "csc", "coo") and len(given) == 2 and len(given[1]) == 2:
        values, (rows, cols) = given
        rows, cols = np.asarray(rows), np.asarray(cols)
        is_summed = name != "coo"
    elif name in ORDERS and len(given) == 3:
        values, minor, indptr = given
        major, minor = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), np.asarray(minor)
        rows, cols = (major, minor) if name == "csr" else (minor, major)
        shape = shape or _shape_of_compressed(name, len(indptr) - 1, minor)
        is_summed = False
    else:
        raise TracingError(*SCIPY)
    size = tuple(shape) if shape is not None else (int(rows.max()) + 1, int(cols.max()) + 1)
    return from_triplets(rows, cols, values, size).as_form(name, ORDERS[name] if is_summed else order_of(rows, cols))


def _shape_of_compressed(name: str, majors: int, minor: Any) -> tuple[int, int]:
    minors = int(np.max(minor)) + 1
    return (majors, minors) if name == "csr" else (minors, majors)


def _of_diagonals(data: Symbolic, offsets: Any, shape: tuple[int, int]) -> SparseMatrix:
    """What `dia_array` stores: ``data[i, j]`` is in column j of the diagonal ``offsets[i]``."""
    data = data if data.ndim == 2 else data[None]
    offset, cols = np.broadcast_arrays(np.atleast_1d(offsets)[:, None], np.arange(data.shape[1]))
    rows = cols - offset
    inside = (rows >= 0) & (rows < shape[0]) & (cols < shape[1])
    return from_triplets(rows[inside], cols[inside], data[inside], shape)


# -- functions: each gives a matrix, and its format where nobody asks for one ----------------------------


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None) -> tuple[SparseMatrix, str]:
    """Values on diagonals; a diagonal of one value is filled with it."""
    is_one = np.ndim(offsets) == 0
    is_nested = np.ndim(diagonals[0]) > 0
    listed = [diagonals] if is_one and not is_nested else list(diagonals)
    places = np.atleast_1d(offsets)
    if len(places) != len(listed):
        raise UnsupportedError(f"{len(listed)} diagonals for {len(places)} offsets", "give as many of both")
    parts = [p if p.ndim else p.reshape(1) for p in all_symbolic(*listed)]
    side = len(parts[0]) + abs(int(places[0]))
    n, m = shape if shape is not None else (side, side)
    rows, cols, values = [], [], []
    for part, k in zip(parts, places.tolist(), strict=True):
        length = min(n + min(k, 0), m - max(k, 0))
        if len(part) not in (1, length):
            raise UnsupportedError(f"a diagonal of {len(part)} values where {length} fit", "give shape=, or fewer")
        i = np.arange(length)
        rows.append(i - min(k, 0))
        cols.append(i + max(k, 0))
        values.append(part if len(part) == length else part[np.zeros(length, int)])
    return from_triplets(rows, cols, values, (n, m)), "dia"


def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None) -> tuple[SparseMatrix, str]:
    return _of_diagonals(data, diags, tuple(m) if n is None else (m, n)), "dia"


def kron(A: Any, B: Any) -> tuple[SparseMatrix, str]:
    """Kronecker product."""
    A, B = as_matrices([A, B])
    left, right = triplets(A), triplets(B)
    rows, cols = (left[i][:, None].astype(np.int64) * B.shape[i] + right[i] for i in (0, 1))
    shape = A.shape[0] * B.shape[0], A.shape[1] * B.shape[1]
    return from_triplets(rows, cols, left[2][:, None] * right[2], shape), "bsr"


def tril(A: Any, k: int = 0) -> tuple[SparseMatrix, str]:
    return A.kept(np.flatnonzero(A.pattern.indices.astype(np.int64) - A.pattern.rows <= k)), "coo"


def triu(A: Any, k: int = 0) -> tuple[SparseMatrix, str]:
    return A.kept(np.flatnonzero(A.pattern.indices.astype(np.int64) - A.pattern.rows >= k)), "coo"


def bmat(blocks: Any) -> tuple[SparseMatrix, str]:
    return block_array(blocks), "coo"


def hstack(blocks: Any) -> tuple[SparseMatrix, str]:
    return block_array([list(blocks)]), "coo"


def vstack(blocks: Any) -> tuple[SparseMatrix, str]:
    return block_array([[b] for b in blocks]), "coo"


def block_diag(mats: Any) -> tuple[SparseMatrix, str]:
    matrices = list(mats)
    return bmat([[m if i == j else None for j, m in enumerate(matrices)] for i in range(len(matrices))])


def find(A: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows, columns and values; those that happen to be zero are kept."""
    return triplets(A)


def _answer(name: str, function: Callable, kind: type | None = None) -> Callable:
    """One of ours behind SciPy's signature. kind : of the matrices that it makes; None: that of its arguments"""
    signature = inspect.signature(getattr(sp, name))

    def answer(*args: Any, **kwargs: Any) -> SparseMatrix:
        given = {k: resolved(v) for k, v in signature.bind(*args, **kwargs).arguments.items()}
        format = given.pop("format", None)
        given.pop("dtype", None)
        made, usual = function(**given)
        form = format or usual
        parts = list(flattened([*given.values()]))
        return made.as_form(form, ORDERS.get(form) if are_sorted(*parts) else None, kind or kind_of(*parts))

    return answer


FUNCTIONS: dict[str, Callable] = {
    "diags": _answer("diags", diags, sp.spmatrix),
    "diags_array": _answer("diags_array", diags, sp.sparray),
    "spdiags": _answer("spdiags", spdiags, sp.spmatrix),
    "bmat": _answer("bmat", bmat),
    "block_array": _answer("block_array", bmat, sp.sparray),
    "find": find,
} | {f.__name__: _answer(f.__name__, f) for f in (block_diag, hstack, kron, tril, triu, vstack)}
