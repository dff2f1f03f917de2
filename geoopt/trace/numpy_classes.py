"""What stands in for classes of NumPy, of objects that hold arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sparse.constructors import TRACING
from ..symbolic.dispatch import is_symbolic
from ..symbolic.fillable import resolved


class Joining:
    """``np.c_`` and ``np.r_``, whose brackets join arrays."""

    def __init__(self, original: Any, is_columns: bool):
        self._original, self._is_columns = original, is_columns

    def __getitem__(self, key: Any) -> Any:
        parts = resolved(key if isinstance(key, tuple) else (key,))
        if not getattr(TRACING, "depth", 0) or not is_symbolic(parts):
            return self._original[key]
        parts = [self._original[p] if isinstance(p, slice) else p for p in parts]
        if self._is_columns:
            return np.concatenate([np.reshape(p, (-1, 1)) if np.ndim(p) < 2 else p for p in parts], axis=-1)
        return np.concatenate([np.atleast_1d(p) for p in parts])


class Broadcast:
    """``np.broadcast``: the shape that arrays have together, and their entries side by side."""

    def __init__(self, *arrays: Any):
        self._arrays = np.broadcast_arrays(*arrays)
        self.shape = self._arrays[0].shape
        self.ndim = self.nd = len(self.shape)
        self.size, self.numiter = math.prod(self.shape), len(arrays)

    def __iter__(self) -> Iterator[tuple]:
        return zip(*(a.reshape(-1) for a in self._arrays), strict=True)
