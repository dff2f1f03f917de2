"""The values of sparse matrices that a program is called with: refused where their pattern is not the compiled one.

To compare a pattern takes as long as to multiply by its matrix. So index arrays that were found to be the pattern's are
known again by their memory, as long as a sample of their entries is what it was.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError
from ..native import address
from ..signature import Argument

SAMPLE = 256  # entries of an array that are compared where it is known


class _Identity(weakref.ref):
    """Equal to that of the same object only, which is not kept."""

    def __eq__(self, other: object) -> bool:
        mine = self()
        return mine is not None and isinstance(other, _Identity) and mine is other()

    __hash__ = None  # type: ignore[assignment]


# equal for arrays in the same memory, as long as it is not given back, and with the same sample of entries
_Seen = tuple[_Identity, np.dtype, tuple[int, ...], tuple[int, ...], int, bytes]


class Patterns:
    """Of one program: by variable, the index arrays that were compared last."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Seen, _Seen]] = {}

    def values(self, argument: Argument, value: Any) -> np.ndarray:
        """The values of a sparse matrix in the order of the pattern."""
        pattern = argument.pattern
        assert pattern is not None
        if not sp.issparse(value) or value.shape != pattern.shape:
            what = f"shape {value.shape}" if sp.issparse(value) else f"type {type(value).__name__}"
            raise ArgumentError(f"variable {argument.name!r} has {what}; give a sparse matrix of shape {pattern.shape}")
        matrix = value if value.format == "csr" else sp.csr_array(value)  # making one takes as long as comparing it
        seen = _seen(matrix.indptr), _seen(matrix.indices)
        if self._known.get(argument.name) == seen:
            return matrix.data
        if _is_equal(matrix, pattern):  # first: to find out whether a matrix is canonical takes longer
            self._known[argument.name] = seen
            return matrix.data
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        if not _is_equal(matrix, pattern):
            raise ArgumentError(
                f"variable {argument.name!r}: its pattern differs from the compiled one, first in row "
                f"{_first_different_row(matrix, pattern)}; compile again for another pattern"
            )
        return matrix.data


def _seen(array: np.ndarray) -> _Seen:
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    sample = array[:: max(len(array) // SAMPLE, 1)].tobytes()
    return _Identity(owner), array.dtype, array.shape, array.strides, address(array), sample


def _is_equal(a: sp.csr_array, b: sp.csr_array) -> bool:
    """Whether two patterns list the same entries in the same order."""
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


def _first_different_row(a: sp.csr_array, b: sp.csr_array) -> int:
    starts = a.indptr != b.indptr
    if starts.any():
        return int(np.argmax(starts)) - 1
    return int(np.searchsorted(a.indptr, np.argmax(a.indices != b.indices), side="right")) - 1
