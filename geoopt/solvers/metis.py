"""METIS, the library in the wheel `cmeel-metis`: orders of elimination and partitions of meshes."""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from pathlib import Path

import numpy as np

OK = 1  # what METIS's functions return


@functools.cache
def metis() -> ctypes.CDLL | None:
    """The library, or None: there is no wheel for some systems."""
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    for folder in dict.fromkeys([sysconfig.get_path("platlib"), *sys.path]):
        place = Path(folder or ".") / "cmeel.prefix" / "lib"
        try:
            ctypes.CDLL(str(place / f"libGKlib{suffix}"), ctypes.RTLD_GLOBAL)  # METIS refers to it
            return ctypes.CDLL(str(place / f"libmetis{suffix}"))
        except OSError:
            continue
    return None


def address(array: np.ndarray) -> ctypes.c_void_p:
    """Where an array of METIS's integers (int32) lies, as its functions take it."""
    assert array.dtype == np.int32 and array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)
