"""C++: derivatives in forward mode by overloading; see the file in C++. One thread."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .compiled import library
from .parametrisation import parametrisation

LIBRARY = library(Path(__file__).with_suffix(".cpp"))
DTYPES = ("float64",)


def _call(name: str, *arguments: np.ndarray | int) -> None:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    getattr(LIBRARY, name)(*(pointer(a.ctypes.data) if isinstance(a, np.ndarray) else number(a) for a in arguments))


def dirichlet_blocks(x: np.ndarray, surface) -> Callable:
    p = parametrisation(surface, x.dtype)
    m = len(p.F)
    slopes, blocks = np.empty((m, 3, 2)), np.empty((m, 21))

    def run(x: np.ndarray) -> tuple:
        _call("blocks", x, p.F, p.area, p.B, m, slopes, blocks)
        return slopes, blocks

    return run


def dirichlet(x: np.ndarray, surface) -> Callable:
    p = parametrisation(surface, x.dtype)
    offsets, slope, data = p.offsets.astype(np.int32), np.empty(x.shape), np.empty(len(p.indices))
    hessian = p.hessian(data)

    def run(x: np.ndarray) -> tuple:
        _call("assembled", x, p.F, p.area, p.B, p.indptr, offsets, len(p.F), len(x), slope, data)
        return slope, hessian

    return run
