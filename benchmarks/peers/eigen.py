"""C++ with Eigen: triplets and Eigen's assembly, Eigen's products; what the paper's speedups are over. One thread.

Results stay Eigen's; `Matrix.get` copies them for checks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .compiled import eigen, library

LIBRARY = library(Path(__file__).with_suffix(".cpp"), [f"-I{eigen()}"])
HANDLES = ("matrix", "product", "transpose", "combination")  # functions that return matrices
NUMBERS = {"d": ctypes.c_double, "s": ctypes.c_float}


def _function(name: str, dtype: np.dtype) -> Callable:
    suffix = "d" if dtype == np.float64 else "s"
    function = getattr(LIBRARY, f"{name}_{suffix}")
    function.restype = ctypes.c_void_p if name in HANDLES else None

    def call(*arguments: Any) -> Any:
        return function(*(_as_c(a, NUMBERS[suffix]) for a in arguments))

    return call


def _as_c(value: Any, number: type) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, Matrix):
        return ctypes.c_void_p(value.handle)
    return number(value) if isinstance(value, float) else value


class Matrix:
    """A matrix of Eigen's, with the operators of SciPy's."""

    def __init__(self, handle: int | None, dtype: np.dtype):
        self.handle, self.dtype = handle, dtype

    def __del__(self) -> None:
        _function("drop", self.dtype)(self)

    def __matmul__(self, other: Matrix) -> Matrix:
        return Matrix(_function("product", self.dtype)(self, other), self.dtype)

    def __add__(self, other: Matrix | Scaled) -> Matrix:
        return Scaled(1.0, self) + other

    def __rmul__(self, number: float) -> Scaled:
        return Scaled(float(number), self)

    @property
    def T(self) -> Matrix:
        return Matrix(_function("transpose", self.dtype)(self), self.dtype)

    def get(self) -> sp.csr_array:
        """A copy as SciPy's."""
        sizes, pointers = (ctypes.c_long * 3)(), [ctypes.c_void_p() for _ in range(3)]
        _function("look", self.dtype)(self, sizes, *map(ctypes.byref, pointers))
        rows, cols, nnz = sizes
        kinds = (ctypes.c_int, rows + 1), (ctypes.c_int, nnz), (NUMBERS["d" if self.dtype == np.float64 else "s"], nnz)
        indptr, indices, data = (
            np.ctypeslib.as_array(ctypes.cast(p, ctypes.POINTER(kind)), (count,)).copy() if count else np.empty(0)
            for p, (kind, count) in zip(pointers, kinds, strict=True)
        )
        return sp.csr_array((data, indices, indptr), shape=(rows, cols))


class Scaled:
    """A number times a matrix, which Eigen multiplies while it adds."""

    def __init__(self, number: float, matrix: Matrix):
        self.number, self.matrix = number, matrix

    def __add__(self, other: Matrix | Scaled) -> Matrix:
        other = other if isinstance(other, Scaled) else Scaled(1.0, other)
        dtype = self.matrix.dtype
        handle = _function("combination", dtype)(self.number, self.matrix, other.number, other.matrix)
        return Matrix(handle, dtype)


def matrix(a: Any, dtype: np.dtype) -> Matrix:
    """A copy of SciPy's matrix."""
    a = sp.csr_array(a)
    indptr, indices, data = (
        np.ascontiguousarray(x, t)
        for x, t in zip((a.indptr, a.indices, a.data), (np.int32, np.int32, dtype), strict=True)
    )
    return Matrix(_function("matrix", dtype)(*a.shape, a.nnz, indptr, indices, data), dtype)


def _two_matrices(name: str, V: np.ndarray, elements: np.ndarray) -> Callable:
    elements, call = np.ascontiguousarray(elements, np.int32), _function(name, V.dtype)

    def run(V: np.ndarray) -> tuple[Matrix, Matrix]:
        L, M = Matrix(None, V.dtype), Matrix(None, V.dtype)
        handles = ctypes.c_void_p(), ctypes.c_void_p()
        call(len(V), len(elements), V, elements, *map(ctypes.byref, handles))
        L.handle, M.handle = (h.value for h in handles)
        return L, M

    return run


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    return _two_matrices("cotan", V, F)


def dual_laplacian(V: np.ndarray, T: np.ndarray) -> Callable:
    return _two_matrices("dual_laplacian", V, T)


def arap(P: np.ndarray, mesh: Any) -> Callable:
    rest, weight = mesh.V.astype(P.dtype), mesh.weight.astype(P.dtype)
    offsets, neighbour = mesh.offsets.astype(np.int32), mesh.neighbour.astype(np.int32)
    R, out, call = np.empty((len(P), 9), P.dtype), np.empty(P.shape, P.dtype), _function("arap", P.dtype)

    def run(P: np.ndarray) -> np.ndarray:
        call(len(P), P, rest, offsets, neighbour, weight, R, out)
        return out

    return run


def cloth_system(x: np.ndarray, v: np.ndarray, h: float, cloth: Any) -> Callable:
    dtype, F = x.dtype, np.ascontiguousarray(cloth.F, np.int32)
    stiffness = (
        cloth.stretch,
        cloth.stretch_damping,
        cloth.shear,
        cloth.shear_damping,
        cloth.bending,
        cloth.bend_damping,
    )
    B, area, gravity = (np.ascontiguousarray(a, dtype) for a in (cloth.B, cloth.area, cloth.gravity))
    bend, b, call = matrix(cloth.bend, dtype), np.empty(x.size, dtype), _function("cloth_system", dtype)

    def run(x: np.ndarray, v: np.ndarray, h: float) -> tuple[Matrix, np.ndarray]:
        A, handle = Matrix(None, dtype), ctypes.c_void_p()
        constants = np.array([*stiffness, cloth.mass, h], dtype)
        call(len(x), len(F), x, v, F, B, area, constants, gravity, bend, ctypes.byref(handle), b)
        A.handle = handle.value
        return A, b

    return run


def cloth_hessian(x: np.ndarray, cloth: Any) -> Callable:
    """The one that was derived by hand, which the system of a step of length 1 is when nothing moves."""
    run, still = cloth_system(x, x, 1.0, cloth), np.zeros_like(x)
    return lambda x: run(x, still, 1.0)[0]


def sparse(function: Callable, *matrices: sp.csr_array) -> Callable:
    """The given values are copied once: who writes C++ has them in Eigen's matrices."""
    theirs = [matrix(m, m.dtype) for m in matrices]
    return lambda *_: function(*theirs)
