"""Views of NumPy's whose addresses are ids, so that NumPy itself slices and reshapes them; see `ids`."""

from __future__ import annotations

import functools

import numpy as np

_GROUND = np.zeros(1, np.int8)  # affine parts are strided views of this one byte; it is never read
_GROUND_AT = _GROUND.__array_interface__["data"][0]


@functools.lru_cache(1024)
def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A phantom NumPy view whose addresses are ids, so that NumPy itself does slicing and reshaping."""
    return np.lib.stride_tricks.as_strided(_GROUND, shape, strides)


def address(phantom: np.ndarray) -> int:
    return phantom.__array_interface__["data"][0] - _GROUND_AT


def compact(array: np.ndarray) -> np.ndarray:
    """Keep one entry along the axes on which a broadcast array does not vary."""
    return array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
