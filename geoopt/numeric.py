"""`Numeric`: what code may ask of a number or an array so that geoopt can compile it; whose arrays they are.

Write reference code with NumPy functions on arrays whose leading axis is the mesh element and whose
trailing axes are small and dense. Python floats, NumPy arrays, CuPy arrays and the compiler's own
`Symbolic` all satisfy this protocol:

* the operators ``+ - * / **`` and unary ``-``, with numbers and arrays on either side;
* NumPy's functions: ``np.sqrt(x)``, ``np.cross(x, y)``, ``np.linalg.norm(x, axis=1)``, ...;
* on arrays, also ``x.shape`` and indexing by structure: slices, integers, integer or boolean arrays.

What code must not ask: a truth value (``if x > 0``; write ``np.where``), a conversion to ``float`` or
``int``, or an index computed from values.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Scalar(Protocol):
    """A number, or an array taken as a whole."""

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...


@runtime_checkable
class Numeric(Scalar, Protocol):
    """An array: a `Scalar` with a shape, indexed by structure.

    Examples
    --------
    >>> [isinstance(x, geoopt.Numeric) for x in (np.ones(3), 1.0, "text")]
    [True, False, False]
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, key: Any, /) -> Any: ...


def select(x: Any, a: Any, b: Any) -> Any:
    """``a`` where x < 0, else ``b`` (the paper's select); on numbers and arrays of any kind.

    Examples
    --------
    >>> geoopt.select(np.array([-2.0, 0.0, 3.0]), 1.0, 5.0)
    array([1., 5., 5.])
    """
    return np.where(x < 0, a, b)


def is_on_gpu(value: Any) -> bool:
    """Whether it is an array or a matrix of CuPy's, told by its name: CuPy takes a second to import."""
    return type(value).__module__.partition(".")[0] in ("cupy", "cupyx")


def on_host(value: Any) -> Any:
    """An array or a matrix as NumPy's or SciPy's: a copy where it is on the GPU."""
    return value.get() if is_on_gpu(value) else value
