"""NumPy's functions of types: those of symbolic arrays are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Symbolic
from .dispatch import implements


def _type(value: Any) -> Any:
    return value.dtype if isinstance(value, Symbolic) else value


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*map(_type, arrays_and_dtypes))


@implements(np.common_type)
def common_type(*arrays: Any) -> type:
    return np.common_type(*(np.empty(0, _type(a)) if isinstance(a, Symbolic) else a for a in arrays))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(_type(from_), to, casting)


def _of_reals(answer: bool) -> Callable:
    return lambda x: answer


implements(np.isrealobj)(_of_reals(True))
implements(np.iscomplexobj)(_of_reals(False))
