"""SciPy's special functions on symbolic arrays, once `scipy.special` is there: nobody else loads it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import UFUNCS
from .arithmetic import apply


def _times_log(x: Any, y: Any, log: Any) -> Any:
    """x log, and 0 where x is, unless y is NaN."""
    return np.where((x == 0) & (y == y), 0.0, x * log)


FUNCTIONS: dict[str, Callable] = {
    "erf": lambda x: apply("erf", x),
    "erfc": lambda x: apply("erfc", x),
    "expit": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "logit": lambda p: np.log(p / (1 - p)),
    "log_expit": lambda x: np.where(x < 0, x - np.log1p(np.exp(x)), -np.log1p(np.exp(-x))),
    "xlogy": lambda x, y: _times_log(x, y, np.log(y)),
    "xlog1py": lambda x, y: _times_log(x, y, np.log1p(y)),
    "entr": lambda x: np.where(x < 0, -np.inf, -_times_log(x, x, np.log(x))),
}


def know_special_functions() -> None:
    """Answer those that have been loaded."""
    loaded = sys.modules.get("scipy.special")
    found = {getattr(loaded, name, None): answer for name, answer in FUNCTIONS.items()} if loaded else {}
    UFUNCS.update({ufunc: answer for ufunc, answer in found.items() if isinstance(ufunc, np.ufunc)})
