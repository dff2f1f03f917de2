"""SciPy's special functions on symbolic arrays. `scipy.special` is not loaded here: who calls them has done so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import SPECIAL
from .arithmetic import apply


def _times_log(x: Any, y: Any, log: Any) -> Any:
    """x log, and 0 where x is, unless y is NaN."""
    return np.where((x == 0) & (y == y), 0.0, x * log)


FUNCTIONS: dict[str, Callable] = {
    "erf": lambda x: apply("erf", x),
    "erfc": lambda x: apply("erfc", x),
    "gamma": lambda x: apply("gamma", x),
    "expit": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "logit": lambda p: np.log(p / (1 - p)),
    "log_expit": lambda x: np.where(x < 0, x - np.log1p(np.exp(x)), -np.log1p(np.exp(-x))),
    "xlogy": lambda x, y: _times_log(x, y, np.log(y)),
    "xlog1py": lambda x, y: _times_log(x, y, np.log1p(y)),
    "entr": lambda x: np.where(x < 0, -np.inf, -_times_log(x, x, np.log(x))),
}


def _answer(ufunc: np.ufunc) -> Callable | None:
    name = ufunc.__name__
    is_special = name in FUNCTIONS and ufunc == getattr(sys.modules.get("scipy.special"), name, None)
    return FUNCTIONS[name] if is_special else None


SPECIAL.append(_answer)
