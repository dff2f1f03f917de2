"""NumPy's functions of types, shapes and memory: those of symbolic arrays are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Symbolic
from .array_moving import roll
from .dispatch import all_axes, implements


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


# -- numbers are real ---------------------------------------------------------------------------------

implements(np.isreal)(lambda x: np.ones(x.shape, bool))
implements(np.iscomplex)(lambda x: np.zeros(x.shape, bool))


@implements(np.imag)
def imag(val: Symbolic) -> Any:
    return np.zeros_like(val)


@implements(np.real_if_close)
def real_if_close(a: Symbolic) -> Symbolic:
    return a


@implements(np.angle)
def angle(z: Symbolic, deg: bool = False) -> Any:
    return np.where(z < 0, 180.0 if deg else np.pi, np.where(z == z, 0.0, np.nan))


# -- shapes -------------------------------------------------------------------------------------------


@implements(np.tril_indices_from)
def tril_indices_from(arr: Symbolic, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(arr.shape[-2], k, arr.shape[-1])


@implements(np.triu_indices_from)
def triu_indices_from(arr: Symbolic, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(arr.shape[-2], k, arr.shape[-1])


@implements(np.diag_indices_from)
def diag_indices_from(arr: Symbolic) -> tuple[np.ndarray, ...]:
    if len(set(arr.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return np.diag_indices(arr.shape[0], arr.ndim)


@implements(np.fft.fftshift)
def fftshift(x: Symbolic, axes: Any = None) -> Symbolic:
    chosen = all_axes(axes, x.ndim)
    return roll(x, [x.shape[a] // 2 for a in chosen], chosen)


@implements(np.fft.ifftshift)
def ifftshift(x: Symbolic, axes: Any = None) -> Symbolic:
    chosen = all_axes(axes, x.ndim)
    return roll(x, [-(x.shape[a] // 2) for a in chosen], chosen)
