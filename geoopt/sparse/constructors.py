"""SciPy's constructors, answered where they are given symbolic values.

The classes (`csr_matrix`, `coo_array`, ...) are asked wherever traced code calls them, under whatever name it has
imported them. Functions (`diags`, `kron`, ...) are asked as ``scipy.sparse.diags``, while code is traced.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import SCIPY, TracingError, UnsupportedError
from ..integers.patterns import restricted
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..symbolic.fillable import resolved
from . import assembled, block_array, hstack, triplets, vstack
from .forms import FORMATS
from .matrix import SparseMatrix

TRACING = threading.local()  # depth: how many functions are being traced in this thread
_CLASSES = [getattr(sp, f"{name}_{kind}") for name in FORMATS for kind in ("array", "matrix")]


def answer_classes() -> None:
    """Let SciPy's classes make symbolic matrices of symbolic values; what they are given otherwise goes its usual way.

    This stays: a class whose ``__new__`` was replaced cannot be put back into its first state.
    """
    for kind in _CLASSES:
        if getattr(kind.__new__, "__module__", "") != __name__:
            kind.__new__ = _constructor(kind.__new__, kind.__name__[:3])


def _constructor(before: Callable, name: str) -> Any:
    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("arg1")
        given = resolved(given) if getattr(TRACING, "depth", 0) else None
        parts = given if type(given) is tuple else (given,)
        if any(isinstance(p, (Symbolic, SparseMatrix)) or _is_list_of_numbers(p) for p in parts):
            call = inspect.signature(lambda arg1, shape=None, dtype=None, copy=False, **_: None)
            return _made(cls, name, given, call.bind(given, *args[1:], **kwargs).arguments)
        return before(cls) if before is object.__new__ else before(cls, *args, **kwargs)

    return __new__


def _is_list_of_numbers(part: Any) -> bool:
    return isinstance(part, (list, tuple)) and any(isinstance(x, Symbolic) for x in part)


def _made(cls: type, name: str, given: Any, call: dict) -> SparseMatrix:
    dtype, shape = call.get("dtype"), call.get("shape")
    if dtype is not None and not np.issubdtype(np.dtype(dtype), np.floating):
        raise UnsupportedError(f"{cls.__name__} of symbolic values with dtype {np.dtype(dtype)}", "leave it out")
    if isinstance(given, SparseMatrix):
        made = given.asformat(name, copy=True)
    elif isinstance(given, Symbolic):
        raise TracingError(*SCIPY)
    else:
        made = _of_arrays(cls, name, given, shape)
    made.graph.has_matrices |= issubclass(cls, sp.spmatrix)
    made.graph.has_arrays |= issubclass(cls, sp.sparray)
    return made


def _of_arrays(cls: type, name: str, given: tuple, shape: Any) -> SparseMatrix:
    """The matrix of SciPy's tuples of arrays."""
    if name == "dia" and len(given) == 2:
        rows, cols, values = _along_diagonals(*given, shape)
    elif name in ("csr", "csc", "coo") and len(given) == 2 and len(given[1]) == 2:
        values, (rows, cols) = given
        rows, cols = np.asarray(rows), np.asarray(cols)
    elif name in ("csr", "csc") and len(given) == 3:
        values, minor, indptr = given
        major = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        rows, cols = (major, np.asarray(minor)) if name == "csr" else (np.asarray(minor), major)
        shape = shape or _shape_of_compressed(name, len(indptr) - 1, minor)
    else:
        raise TracingError(*SCIPY)
    size = tuple(shape) if shape is not None else (int(rows.max()) + 1, int(cols.max()) + 1)
    made = assembled(rows, cols, _numbers(values), size)
    made.format = name
    in_order = np.array_equal(rows, made.pattern.rows) and np.array_equal(cols, made.pattern.indices)
    made.is_by_rows = in_order or (name == "csr" and len(given) == 2)
    return made


def _numbers(values: Any) -> Symbolic:
    """Values (k,), of which some may be known."""
    if isinstance(values, Symbolic):
        return values
    graph = next(v.graph for v in values if isinstance(v, Symbolic))
    return as_symbolic(graph, list(values))


def _shape_of_compressed(name: str, majors: int, minor: Any) -> tuple[int, int]:
    minors = int(np.max(minor)) + 1
    return (majors, minors) if name == "csr" else (minors, majors)


def _along_diagonals(data: Symbolic, offsets: Any, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, Symbolic]:
    """Triplets of what `dia_array` stores: ``data[i, j]`` is in column j of the diagonal ``offsets[i]``."""
    data = data if data.ndim == 2 else data[None]
    offset, cols = np.broadcast_arrays(np.atleast_1d(offsets)[:, None], np.arange(data.shape[1]))
    rows = cols - offset
    inside = (rows >= 0) & (rows < shape[0]) & (cols < shape[1])
    return rows[inside], cols[inside], data[inside]


# -- functions ------------------------------------------------------------------------------------------


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: str | None = None, **_: Any) -> SparseMatrix:
    """Values on diagonals; a diagonal of one value is filled with it."""
    is_one = np.ndim(offsets) == 0
    is_nested = np.ndim(diagonals[0]) > 0
    listed = [diagonals] if is_one and not is_nested else list(diagonals)
    places = np.atleast_1d(offsets)
    if len(places) != len(listed):
        raise UnsupportedError(f"{len(listed)} diagonals for {len(places)} offsets", "give as many of both")
    graph = next(v.graph for d in listed for v in _entries(d) if isinstance(v, Symbolic))
    parts = [as_symbolic(graph, d) for d in listed]
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
    return _of_format(assembled(rows, cols, values, (n, m)), format or "dia")


def _entries(value: Any) -> list:
    return [value] if isinstance(value, Symbolic) or np.ndim(value) == 0 else list(value)


def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: str | None = None) -> SparseMatrix:
    shape = tuple(m) if n is None else (m, n)
    return _of_format(assembled(*_along_diagonals(data, diags, shape), shape), format or "dia")


def kron(A: Any, B: Any, format: str | None = None) -> SparseMatrix:
    """Kronecker product."""
    left, right = (triplets(sp.coo_array(x) if isinstance(x, np.ndarray) else x) for x in (A, B))
    rows, cols = (left[i][:, None].astype(np.int64) * B.shape[i] + right[i] for i in (0, 1))
    shape = A.shape[0] * B.shape[0], A.shape[1] * B.shape[1]
    return _of_format(assembled(rows, cols, left[2][:, None] * right[2], shape), format or "bsr")


def tril(A: Any, k: int = 0, format: str | None = None) -> SparseMatrix:
    return _part(A, A.pattern.indices.astype(np.int64) - A.pattern.rows <= k, format)


def triu(A: Any, k: int = 0, format: str | None = None) -> SparseMatrix:
    return _part(A, A.pattern.indices.astype(np.int64) - A.pattern.rows >= k, format)


def _part(A: SparseMatrix, mask: np.ndarray, format: str | None) -> SparseMatrix:
    kept = np.flatnonzero(mask)
    return _of_format(SparseMatrix(restricted(A.pattern, kept), A.values[kept]), format or "coo")


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> SparseMatrix:
    matrices = list(mats)
    rows = [[m if i == j else None for j, m in enumerate(matrices)] for i in range(len(matrices))]
    return _of_format(block_array(rows), format or "coo")


def _of_format(made: SparseMatrix, format: str) -> SparseMatrix:
    return made.asformat(format)


def find(A: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows, columns and values; those that happen to be zero are kept."""
    return triplets(A)


def _formatted(function: Callable, older: bool) -> Callable:
    """One of ours in the place of SciPy's, which may make one of the older matrices."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        made = function(*resolved(args), **{k: resolved(v) for k, v in kwargs.items()})
        if isinstance(made, SparseMatrix):
            made.graph.has_matrices |= older
            made.graph.has_arrays |= not older
        return made

    return answer


def _joined(function: Callable) -> Callable:
    def answer(blocks: Any, format: str | None = None, dtype: Any = None) -> SparseMatrix:
        return _of_format(function(blocks), format or "coo")

    return answer


# by SciPy's names; what tells the kind of a result there is the kind of its arguments, except of the first three
FUNCTIONS: dict[str, Callable] = {
    "diags": _formatted(diags, older=True),
    "spdiags": _formatted(spdiags, older=True),
    "bmat": _formatted(_joined(block_array), older=True),
    "diags_array": _formatted(lambda diagonals, *, offsets=0, **rest: diags(diagonals, offsets, **rest), older=False),
    "block_array": _formatted(_joined(block_array), older=False),
    "hstack": _joined(hstack),
    "vstack": _joined(vstack),
    "block_diag": block_diag,
    "kron": kron,
    "tril": tril,
    "triu": triu,
    "find": find,
}
