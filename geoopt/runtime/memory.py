"""Memory that the system can back by large pages, so that sweeps over big arrays do not wait for page tables."""

from __future__ import annotations

import mmap

import numpy as np

LARGE = 1 << 21  # bytes of a large page


def empty(count: int, dtype: np.dtype) -> np.ndarray:
    """An array (count,) with any content; a big one begins on a large page of its own.

    Memory that `malloc` hands out again after others used it stays in small pages.
    """
    size = count * dtype.itemsize
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(count, dtype)
    pages = mmap.mmap(-1, size + LARGE)
    pages.madvise(mmap.MADV_HUGEPAGE)
    start = -np.frombuffer(pages, np.uint8).ctypes.data % LARGE
    # views of an array that is a view itself refer to that one's base; `Pool` counts who refers to this array
    return np.frombuffer(pages, dtype, count, start)
