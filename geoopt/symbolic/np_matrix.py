"""`MatrixLike`: what stands in for ``np.matrix``, whose arrays keep two axes and whose ``*`` is the product.

SciPy's older matrices give such sums and dense forms; arguments of that type are such.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import MissingAttributeError, UnsupportedError, unsupported
from ..graph import Graph
from . import MATRICES, Symbolic, is_condition
from .arithmetic import as_symbolic
from .dispatch import REDUCING

# functions of NumPy that give matrices of matrices; of `REDUCING` those do so that have an axis
_MATRICES = (
    *(np.dot, np.concatenate, np.vstack, np.hstack, np.stack, np.transpose, np.where, np.tile, np.diagonal, np.diag),
    *(np.linalg.inv, np.linalg.matrix_power, np.linalg.solve, np.copy, np.broadcast_to, np.reshape, np.cross),
)
_ARRAYS = (np.ravel, np.trace, np.linalg.det, np.linalg.norm, np.shape, np.ndim, np.size, np.einsum, np.outer)


def _reduced(function: Any, array: Any, axis: Any, kwargs: dict) -> Any:
    """Over all entries a number; else a row or a column."""
    if axis is None:
        return function(array, **kwargs)
    return MatrixLike(function(array, axis=axis, keepdims=True, **kwargs))


def _reducing(function: Any) -> Any:
    def method(self: MatrixLike, axis: Any = None, **kwargs: Any) -> Any:
        return _reduced(function, self.A, axis, kwargs)

    return method


class MatrixLike(NDArrayOperatorsMixin):
    """A matrix of symbolic values. ``A`` : (n, m), the same as an array"""

    __array_priority__ = 2000.0
    __class__ = property(lambda self: np.matrix)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]
    ndim = 2

    def __init__(self, array: Any):
        self.A: Symbolic = array if array.ndim == 2 else array.reshape(1, -1)

    shape = property(lambda self: self.A.shape)
    size = property(lambda self: self.A.size)
    dtype = property(lambda self: self.A.dtype)
    A1 = property(lambda self: self.A.flatten())
    T = property(lambda self: MatrixLike(self.A.T))
    H = T
    I = property(lambda self: MatrixLike(np.linalg.inv(self.A)))  # noqa: E741 - NumPy's name

    def __len__(self) -> int:
        return len(self.A)

    def __iter__(self) -> Iterator[MatrixLike]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        found = self.A[key]
        if not found.ndim:
            return found
        is_column = isinstance(key, tuple) and len(key) > 1 and np.isscalar(key[1]) and not np.isscalar(key[0])
        return MatrixLike(found[:, None] if found.ndim == 1 and is_column else found)

    def __setitem__(self, key: Any, value: Any) -> None:
        key, given = as_array(key), as_array(value)
        is_row = np.ndim(given) == 2 and np.shape(given)[0] == 1
        self.A[key] = given[0] if is_row and not is_condition(key) and self.A[key].ndim == 1 else given

    # -- products ---------------------------------------------------------------------------------------

    def __mul__(self, other: Any) -> MatrixLike:
        return self @ _two_axes(other) if np.ndim(other) else MatrixLike(self.A * other)

    def __rmul__(self, other: Any) -> MatrixLike:
        return MatrixLike(_two_axes(other) @ self.A) if np.ndim(other) else MatrixLike(other * self.A)

    def __matmul__(self, other: Any) -> MatrixLike:
        return MatrixLike(self.A @ as_array(other))

    def __rmatmul__(self, other: Any) -> MatrixLike:
        return MatrixLike(as_array(other) @ self.A)

    def __pow__(self, exponent: int) -> MatrixLike:
        return MatrixLike(np.linalg.matrix_power(self.A, exponent))

    dot = __mul__

    # -- NumPy's functions --------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> MatrixLike:
        if method != "__call__" or kwargs:
            what = f"np.{ufunc.__name__}.{method} of a np.matrix"
            raise UnsupportedError(f"{what} is not supported", "give np.asarray(A)")
        if ufunc == np.multiply and inputs[0] is not self and _is_operator(sys._getframe(1)):
            return inputs[0] * self if type(inputs[0]) is MatrixLike else self.__rmul__(inputs[0])
        return MatrixLike(ufunc(*map(as_array, inputs)))

    def __array_function__(self, function: Any, _: Any, args: tuple, kwargs: dict) -> Any:
        args, kwargs = tuple(map(as_array, args)), {k: as_array(v) for k, v in kwargs.items()}
        if function in REDUCING:
            array, *others = args
            axis = kwargs.pop("axis", others[0] if others else None)
            return _reduced(function, array, axis, kwargs)
        if function not in _MATRICES and function not in _ARRAYS:
            raise UnsupportedError(f"np.{function.__name__} of a np.matrix is not supported", "give np.asarray(A)")
        found = function(*args, **kwargs)
        is_matrix = function in _MATRICES and isinstance(found, Symbolic) and found.ndim
        return MatrixLike(found) if is_matrix else found

    sum, mean, max, min, prod, any, all, std, var = map(_reducing, REDUCING)

    def reshape(self, *shape: Any, order: str = "C") -> MatrixLike:
        return MatrixLike(self.A.reshape(*shape, order=order))

    def transpose(self) -> MatrixLike:
        return self.T

    def ravel(self, order: str = "C") -> MatrixLike:
        return MatrixLike(self.A.ravel(order))

    def getA(self) -> Symbolic:
        return self.A

    def getA1(self) -> Symbolic:
        return self.A1

    def copy(self) -> MatrixLike:
        return MatrixLike(self.A.copy())

    def astype(self, dtype: Any, **how: Any) -> MatrixLike:
        return MatrixLike(self.A.astype(dtype, **how))

    def view(self, kind: Any = np.matrix) -> Any:
        return self if kind is np.matrix else self.A.view(kind)

    flatten = ravel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.matrix, name):
            raise AttributeError(f"'matrix' object has no attribute {name!r}", name=name, obj=self)
        raise unsupported(f"A.{name} of a np.matrix", MissingAttributeError)


def _is_operator(frame: FrameType) -> bool:
    """Whether a frame executes ``a * b``: an array of NumPy's on the left calls ``np.multiply`` for that."""
    while frame.f_globals.get("__name__", "").startswith(__name__.partition(".")[0]) and frame.f_back:
        frame = frame.f_back
    opcode, which = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    return dis.opname[opcode] == "BINARY_OP" and dis._nb_ops[which][1] in ("*", "*=")  # type: ignore[attr-defined]


def as_array(value: Any) -> Any:
    """A value in which matrices are arrays."""
    if type(value) is MatrixLike:
        return value.A
    if type(value) is np.matrix:
        return np.asarray(value)
    return type(value)(map(as_array, value)) if type(value) in (list, tuple) else value


def _two_axes(value: Any) -> Any:
    """As what a matrix multiplies: of one axis, it is a row."""
    value = as_array(value)
    return np.reshape(value, (1, -1)) if np.ndim(value) == 1 else value


def _of(graph: Graph, value: Any) -> MatrixLike:
    return MatrixLike(as_symbolic(graph, as_array(value)))


MATRICES.update({MatrixLike: _of, np.matrix: _of})
