"""MKL's products in two stages (mkl_sparse_sp2m): the structure beforehand, then the values again and again.

MKL has no such sums and transposes: those are the ones written by hand for Numba.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import mkl_library, numba_expert
from .mkl_library import MKL
from .numba_expert.sparse import Operand, prepared
from .numba_expert.sparse import Planner as ByHand

AS_IT_IS, FULL_WITHOUT_VALUES, FINISH = 10, 93, 92  # operation and stages
LETTER = {np.dtype(np.float64): "d", np.dtype(np.float32): "s"}


class Description(ctypes.Structure):
    """A general matrix."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int))


GENERAL = Description(20, 0, 0)


@contextmanager
def threads(n: int) -> Iterator[None]:
    with mkl_library.threads(n), numba_expert.threads(n):
        yield


class Planner(ByHand):
    """Plans products for MKL."""

    def __init__(self, dtype: np.dtype):
        super().__init__(dtype)
        self.handles: dict[int, ctypes.c_void_p] = {}  # of operands, by identity
        self.operands: list[Operand] = []  # what handles point into stays alive

    def given(self, matrix: sp.csr_array) -> Operand:
        matrix = sp.csr_array(matrix)  # its values are copied, so that handles stay right
        return Operand(super().given(matrix).pattern, matrix.data.copy())

    def assign(self, operand: Operand, values: np.ndarray) -> None:
        operand.data[:] = values

    def product(self, a: Operand, b: Operand) -> Operand:
        left, right, result = self._handle(a), self._handle(b), ctypes.c_void_p()

        def run(stage: int) -> None:
            status = MKL.mkl_sparse_sp2m(AS_IT_IS, GENERAL, left, AS_IT_IS, GENERAL, right, stage, ctypes.byref(result))
            assert status == 0, f"mkl_sparse_sp2m failed with status {status}"

        run(FULL_WITHOUT_VALUES)
        run(FINISH)
        out = self._exported(result)
        self.handles[id(out)] = result
        self.operands.append(out)
        self.steps.append(lambda: run(FINISH))
        return out

    def _handle(self, operand: Operand) -> ctypes.c_void_p:
        """MKL's view of an operand's arrays."""
        if id(operand) not in self.handles:
            handle, C = ctypes.c_void_p(), operand.pattern
            start, columns, values = (ctypes.c_void_p(x.ctypes.data) for x in (C.indptr, C.indices, operand.data))
            end = ctypes.c_void_p(C.indptr.ctypes.data + C.indptr.itemsize)
            create = getattr(MKL, f"mkl_sparse_{LETTER[self.dtype]}_create_csr")
            status = create(ctypes.byref(handle), 0, *C.shape, start, end, columns, values)
            assert status == 0, f"mkl_sparse_create_csr failed with status {status}"
            self.handles[id(operand)] = handle
            self.operands.append(operand)
        return self.handles[id(operand)]

    def _exported(self, handle: ctypes.c_void_p) -> Operand:
        """MKL's arrays of a matrix, in place."""
        base, rows, cols = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        start, end, columns, values = (ctypes.c_void_p() for _ in range(4))
        export = getattr(MKL, f"mkl_sparse_{LETTER[self.dtype]}_export_csr")
        places: list[Any] = [base, rows, cols, start, end, columns, values]
        status = export(handle, *map(ctypes.byref, places))
        assert status == 0, f"mkl_sparse_export_csr failed with status {status}"
        indptr = _view(start, rows.value + 1, np.dtype(np.int32))
        nnz = int(indptr[-1])
        pattern = sp.csr_array((rows.value, cols.value))
        pattern.indptr, pattern.indices = indptr, _view(columns, nnz, np.dtype(np.int32))
        pattern.data = np.ones(nnz, np.float32)
        return Operand(pattern, _view(values, nnz, self.dtype))


def _view(pointer: ctypes.c_void_p, count: int, dtype: np.dtype) -> np.ndarray:
    if not count:
        return np.empty(0, dtype)
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer.value or 0)
    return np.frombuffer(buffer, dtype)


def sparse(function: Callable, *matrices: sp.csr_array) -> Callable:
    return prepared(Planner(matrices[0].dtype), function, matrices)
