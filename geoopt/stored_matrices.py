"""Sparse matrices of SciPy's and CuPy's as the arrays that they store: index arrays, and values in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

INDICES = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col"), "dia": ("offsets",)}


def made(kind: type, data: Any, places: tuple, **how: Any) -> Any:
    """A matrix of SciPy's or CuPy's without duplicates, of its ``data`` and its `index_arrays`."""
    is_coo = kind.__name__.startswith("coo")
    matrix: Any = kind((data, places) if is_coo else (data, *places), **how)
    if matrix.format != "dia":
        matrix.has_canonical_format = True
    return matrix


def without_values(kind: type, count: tuple[int, ...], places: tuple[np.ndarray, ...], shape: tuple[int, int]) -> Any:
    """A matrix of SciPy's of known `index_arrays`, which cannot be written. count : the shape of its ``data``"""
    places = tuple(a.view() for a in places)
    for array in places:
        array.flags.writeable = False
    empty = made(kind, np.broadcast_to(0.0, count), places, shape=shape, copy=False)
    if empty.format in ("csr", "csc"):
        empty.has_sorted_indices = True
    return empty


def index_arrays(matrix: Any) -> tuple[np.ndarray, ...]:
    """The arrays that say where the entries of a result's matrix are."""
    return tuple(getattr(matrix, name) for name in INDICES[matrix.format])


def with_values(pattern: Any, values: Any) -> Any:
    """A matrix that shares a pattern's index arrays; checking them again would cost more than small kernels."""
    matrix = object.__new__(type(pattern))
    matrix.__dict__ = {**pattern.__dict__, "data": values}
    return matrix
