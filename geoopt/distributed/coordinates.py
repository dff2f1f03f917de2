"""Values of PETSc's matrices by coordinates, also with versions of petsc4py that do not know how."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .ranks import PETSc


def preallocate(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> None:
    """Where the values of `set_values` will go, of rows of any rank; those with one place are added.

    rows, columns : are overwritten
    """
    rows, columns = (np.ascontiguousarray(a, PETSc.IntType) for a in (rows, columns))
    if hasattr(matrix, "setPreallocationCOO"):
        matrix.setPreallocationCOO(rows, columns)
        return
    pointers = (a.ctypes.data_as(ctypes.c_void_p) for a in (rows, columns))
    _checked(_library().MatSetPreallocationCOO(matrix.handle, len(rows), *pointers))


def set_values(matrix: Any, values: np.ndarray) -> None:
    """New values, in the order of the coordinates."""
    values = np.ascontiguousarray(values, PETSc.ScalarType)
    if hasattr(matrix, "setValuesCOO"):
        matrix.setValuesCOO(values, PETSc.InsertMode.INSERT_VALUES)
        return
    pointer = values.ctypes.data_as(ctypes.c_void_p)
    _checked(_library().MatSetValuesCOO(matrix.handle, pointer, int(PETSc.InsertMode.INSERT_VALUES)))


def _checked(code: int) -> None:
    if code:
        raise PETSc.Error(code)


@functools.cache
def _library() -> ctypes.CDLL:
    """PETSc's own functions, of which petsc4py before 3.19 leaves these out."""
    library = ctypes.CDLL(PETSc.__file__)
    address = ctypes.c_void_p
    library.MatSetPreallocationCOO.argtypes = [address, ctypes.c_ssize_t, address, address]
    library.MatSetValuesCOO.argtypes = [address, address, ctypes.c_int]
    return library
