"""What ``np.matrix`` is to SciPy's older matrices: what their sums over an axis are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import UnsupportedError
from . import Symbolic


class NumpyMatrix(NDArrayOperatorsMixin):
    """Symbolic values that stay 2-D. Code that makes an array of them or scales them is answered; the rest, which
    means something else for ``np.matrix`` than for arrays, is refused."""

    __array_priority__ = 1000.0
    ndim = 2

    def __init__(self, array: Symbolic):
        self.A = array

    @property
    def A1(self) -> Symbolic:
        return self.A.flatten()

    @property
    def T(self) -> NumpyMatrix:
        return NumpyMatrix(self.A.T)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.A.shape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> NumpyMatrix:
        are_numbers = all(x is self or not np.ndim(x) for x in inputs)
        if method != "__call__" or kwargs or not are_numbers or ufunc is np.power:
            self._refuse(f"np.{ufunc.__name__}")
        return NumpyMatrix(ufunc(*(x.A if x is self else x for x in inputs)))

    def __array_function__(self, function: Any, *_: Any) -> Any:
        self._refuse(f"np.{function.__name__}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.matrix, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self._refuse(name)

    def __getitem__(self, key: Any) -> Any:
        self._refuse("indexing")

    def _refuse(self, what: str) -> None:
        what = f"{what} of a sum over an axis of one of SciPy's older matrices, which is a np.matrix,"
        raise UnsupportedError(f"{what} is not supported", "write np.asarray(A.sum(axis=1)).ravel() for an array")
