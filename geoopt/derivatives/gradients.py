"""`gradient` and `value_and_gradient`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..symbolic import symbolic
from ..symbolic.arithmetic import as_symbolic
from .calls import Call, Wrt, derivative, like
from .reverse import adjoints


def gradient(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the derivatives of a number.

    function : returns one number
    wrt : position or name of the argument to differentiate by, or a tuple of them; floats, arrays of floats, or sparse
        matrices of them, whose stored values are differentiated by
    Returns a function of the same arguments, which returns an array of the argument's shape, or a matrix with its
    pattern (a tuple of them for a tuple). Reverse mode: it takes a small multiple of the operations of the function.

    Where a derivative does not exist it is what IEEE arithmetic makes of the formula: infinite for sqrt and cbrt at 0
    and for arcsin and arccos at ±1 (times 0, as in the norm of a zero vector, NaN: guard it with np.where), 0 for abs
    at 0, that of one of the two for minimum and maximum of equal numbers. What np.where does not choose has no
    influence, whatever its derivative is.

    Raises ArgumentError where ``function`` does not return one number or ``wrt`` names no array of floats.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> area = geoopt.operators.surface_area
    >>> slope = geoopt.gradient(area)(V, F)
    >>> np.allclose(np.sum(slope * V), 2 * area(V, F))  # for areas grow as squares do
    True
    >>> np.allclose(slope.sum(axis=0), 0)  # and do not change when all moves along
    True
    """
    both = value_and_gradient(function, wrt)
    return like(function, "gradient", lambda *args, **kwargs: both(*args, **kwargs)[1])


def value_and_gradient(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns a number together with its derivatives, see `gradient`.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> area, slope = geoopt.value_and_gradient(geoopt.operators.surface_area)(V, F)
    >>> np.allclose(np.sum(slope * V), 2 * area)
    True
    """

    def derived(call: Call) -> Any:
        traced = call.inner(function, "one number")
        result = traced.traced.outputs[0]
        found = adjoints(traced.graph, result, list(traced.arguments))
        slopes = [found.get(n.index, as_symbolic(traced.graph, np.zeros(n.shape))) for n in traced.arguments]
        value, *slopes = traced.inlined([symbolic(traced.graph, result), *slopes])
        return value, call.arranged(slopes)

    return derivative(function, "value and gradient", wrt, derived)
