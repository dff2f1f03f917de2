"""Who asks for a symbolic value as an array of NumPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import TracingError
from ..remedies import SCIPY

_PACKAGE = __name__.partition(".")[0]


def asked_by_scipy(value: Any) -> np.ndarray | None:
    """What ``value.__array__`` answers where `scipy.sparse` calls it; None where somebody else does.

    Raises TracingError where SciPy wants the numbers.
    """
    caller: Any = sys._getframe(2)
    while caller.f_globals.get("__name__", "").startswith(_PACKAGE):  # ours around NumPy's function
        caller = caller.f_back
    if not caller.f_globals.get("__name__", "").startswith("scipy.sparse"):
        return None
    if caller.f_code.co_name in ("__init__", "getdata"):  # of a matrix that is to have the values
        raise TracingError(*SCIPY)
    nothing = np.empty((), object)  # how SciPy finds out, in A @ x and A * x, that x knows better
    nothing[()] = value
    return nothing


def asked_by_vectorize() -> bool:
    """Whether it is ``np.vectorize`` that calls ``value.__array__``."""
    return sys._getframe(2).f_code.co_qualname.startswith("vectorize.")
