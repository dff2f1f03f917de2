"""NumPy's rules for what stands between the brackets of an index."""

from __future__ import annotations

from typing import Any

import numpy as np


def normalised(key: object, shape: tuple[int, ...]) -> tuple[list, list[bool]]:
    """Expand an index to one entry per axis (and per new axis); say which entries are advanced."""
    parts: list[Any] = list(key) if isinstance(key, tuple) else [key]
    parts = [np.asarray(p) if isinstance(p, (list, tuple, range, np.ndarray)) else p for p in parts]
    takes = [_mask_axes(p) or int(p is not None and p is not Ellipsis) for p in parts]
    if sum(takes) > len(shape):
        raise IndexError(f"too many indices: the array has {len(shape)} axes, {sum(takes)} were indexed")
    axis = 0
    expanded: list[Any] = []
    for i, p in enumerate(parts):
        if p is Ellipsis:
            axis = len(shape) - sum(takes[i:])
        along = shape[axis : axis + takes[i]]
        if _mask_axes(p) and any(m not in (0, n) for m, n in zip(np.shape(p), along, strict=False)):
            raise IndexError(f"a boolean mask of shape {np.shape(p)} does not fit axes of lengths {along}")
        expanded.extend(np.nonzero(p) if _mask_axes(p) else [p])
        axis += takes[i]
    consumed = sum(takes)
    fill = [slice(None)] * (len(shape) - consumed)
    where = next((i for i, p in enumerate(expanded) if p is Ellipsis), None)
    expanded = expanded + fill if where is None else expanded[:where] + fill + expanded[where + 1 :]
    arrays = any(isinstance(p, np.ndarray) for p in expanded)
    keys: list = []
    advanced = []
    for p in expanded:
        if isinstance(p, (int, np.integer)) and not isinstance(p, bool):
            p = np.asarray(p) if arrays else int(p)
        if isinstance(p, np.ndarray):
            if not np.issubdtype(p.dtype, np.integer) and p.size:
                raise IndexError(f"indices must be integers or booleans, not {p.dtype}")
        elif isinstance(p, bool) or (not isinstance(p, (slice, int)) and p is not None):
            raise IndexError(f"cannot index with {type(p).__name__}: use integers, slices or integer arrays")
        keys.append(p)
        advanced.append(isinstance(p, np.ndarray))
    return keys, advanced


def _mask_axes(part: Any) -> int:
    """How many axes a mask stands for; 0 for everything else."""
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 0


def wrapped(index: np.ndarray, length: int, axis: int) -> np.ndarray:
    """Check bounds and wrap negative indices, as NumPy does."""
    if index.size == 0:
        return index.astype(np.int32)
    low, high = int(index.min()), int(index.max())
    index = index if index.dtype.itemsize >= 4 else index.astype(np.int32)  # room for the wrapped ones
    if low < -length or high >= length:
        bad = low if low < -length else high
        raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {length}")
    return np.where(index < 0, index + length, index) if low < 0 else index
