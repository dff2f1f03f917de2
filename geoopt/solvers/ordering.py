"""The order in which unknowns are eliminated: nested dissection by METIS, else SciPy's minimum degree."""

from __future__ import annotations

import ctypes

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..errors import SolverError
from .metis import OK, address, metis


def ordering(starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Which vertex of a graph comes first, second, ...: an order that keeps factors sparse; deterministic.

    starts, neighbours : of each vertex, without itself, as in CSR; symmetric
    """
    n = len(starts) - 1
    if not len(neighbours):
        return np.arange(n)
    library = metis()
    return _dissected(library, starts, neighbours) if library else _minimum_degree(starts, neighbours)


def name() -> str:
    """Which order is used here."""
    return "nested dissection by METIS" if metis() else "SciPy's minimum degree"


def _dissected(library: ctypes.CDLL, starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    n = ctypes.c_int32(len(starts) - 1)
    graph = [np.ascontiguousarray(a, np.int32) for a in (starts, neighbours)]
    order, places = np.empty(n.value, np.int32), np.empty(n.value, np.int32)
    xadj, adjncy, perm, inverse = map(address, (*graph, order, places))
    if library.METIS_NodeND(ctypes.byref(n), xadj, adjncy, None, None, perm, inverse) != OK:
        raise SolverError("METIS found no order; is there enough memory?")
    return order.astype(np.int64)


def _minimum_degree(starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """The order that SuperLU finds for a dominant matrix of this pattern."""
    n = len(starts) - 1
    off = sp.csc_array((np.full(len(neighbours), -1.0), neighbours, starts), shape=(n, n))
    dominant = sp.csc_array(off + sp.diags_array(np.diff(starts) + 1.0))
    lu = splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    return np.argsort(lu.perm_c)
