"""The order in which unknowns are eliminated: nested dissection by METIS, else SciPy's minimum degree."""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..errors import SolverError

OK = 1  # what METIS returns


def ordering(starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Which vertex of a graph comes first, second, ...: an order that keeps factors sparse; deterministic.

    starts, neighbours : of each vertex, without itself, as in CSR; symmetric
    """
    n = len(starts) - 1
    if not len(neighbours):
        return np.arange(n)
    metis = _metis()
    return _dissected(metis, starts, neighbours) if metis else _minimum_degree(starts, neighbours)


def name() -> str:
    """Which order is used here."""
    return "nested dissection by METIS" if _metis() else "SciPy's minimum degree"


@functools.cache
def _metis() -> ctypes.CDLL | None:
    """The library in the wheel cmeel-metis, or None: there is no wheel for some systems."""
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    for folder in dict.fromkeys([sysconfig.get_path("platlib"), *sys.path]):
        place = Path(folder or ".") / "cmeel.prefix" / "lib"
        try:
            ctypes.CDLL(str(place / f"libGKlib{suffix}"), ctypes.RTLD_GLOBAL)  # METIS refers to it
            library = ctypes.CDLL(str(place / f"libmetis{suffix}"))
        except OSError:
            continue
        library.METIS_NodeND.restype = ctypes.c_int
        return library
    return None


def _dissected(metis: ctypes.CDLL, starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    n = ctypes.c_int32(len(starts) - 1)
    graph = [np.ascontiguousarray(a, np.int32) for a in (starts, neighbours)]
    order, places = np.empty(n.value, np.int32), np.empty(n.value, np.int32)
    xadj, adjncy, perm, inverse = (a.ctypes.data_as(ctypes.c_void_p) for a in (*graph, order, places))
    if metis.METIS_NodeND(ctypes.byref(n), xadj, adjncy, None, None, perm, inverse) != OK:
        raise SolverError("METIS found no order; is there enough memory?")
    return order.astype(np.int64)


def _minimum_degree(starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """The order that SuperLU finds for a dominant matrix of this pattern."""
    n = len(starts) - 1
    off = sp.csc_array((np.full(len(neighbours), -1.0), neighbours, starts), shape=(n, n))
    dominant = sp.csc_array(off + sp.diags_array(np.diff(starts) + 1.0))
    lu = splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    return np.argsort(lu.perm_c)
