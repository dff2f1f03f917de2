"""MKL's library from its wheel, and its switch for the number of threads."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _found() -> ctypes.CDLL:
    folders = [Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"]
    for folder in folders:
        for path in sorted([*folder.glob("libmkl_rt.so*"), *folder.glob("mkl_rt*.dll")]):
            os.environ.setdefault("MKL_RT", str(path))  # where sparse_dot_mkl looks
            return ctypes.CDLL(str(path))
    raise ImportError("MKL's library is not there")


# numba's threads are OpenMP's from GCC: one runtime in a process, so that none spins while the other works
os.environ.setdefault("MKL_THREADING_LAYER", "GNU")
MKL = _found()


@contextmanager
def threads(n: int) -> Iterator[None]:
    """MKL's own switch."""
    before = MKL.mkl_get_max_threads()
    MKL.MKL_Set_Num_Threads(n)
    try:
        yield
    finally:
        MKL.MKL_Set_Num_Threads(before)
