"""NumPy's elementwise functions that are no row of `ops`, and choices by conditions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..integers.ids import Ids
from ..ops import BY_UFUNC
from . import Symbolic
from .arithmetic import apply, as_symbolic, joined
from .array_moving import viewed
from .dispatch import all_symbolic, implements, implements_call, implements_method, is_symbolic, numbers

# -- choices ----------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return np.nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    if not isinstance(condition, Symbolic):
        return where_fixed(np.asarray(condition, bool), x, y)
    return apply("where", condition, x, y)


def where_fixed(mask: np.ndarray, x: Any, y: Any) -> Symbolic:
    """A choice known while tracing only moves ids."""
    x, y = all_symbolic(x, y)
    shape = np.broadcast_shapes(mask.shape, x.shape, y.shape)
    mask = np.broadcast_to(mask, shape)
    if mask.all() or not mask.any():
        return viewed(np.broadcast_to, x if mask.all() else y, shape)

    def chosen(choices: list[Symbolic]) -> Symbolic:
        ids = np.where(mask, *(c.ids.broadcast_to(shape).to_array() for c in choices))
        return choices[0].reading(Ids.spaced(ids))

    return joined([x, y], chosen)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Symbolic:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    *choices, result = all_symbolic(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result


def piecewise(given: dict) -> Symbolic:
    """Functions are evaluated where a fixed condition holds, and everywhere for a symbolic one."""
    [x] = numbers(given["x"])
    cases = _cases(x, given["condlist"], list(given["funclist"]))
    result = as_symbolic(x.graph, np.zeros(x.shape))
    for condition, value in cases:
        is_fixed = x.ndim > 0 and not isinstance(condition, Symbolic)
        if callable(value):
            value = value(x[condition] if is_fixed else x, *given.get("args", ()), **given.get("kw", {}))
        if is_fixed:
            ids = np.array(result.ids.to_array(np.int64))
            ids[condition] = as_symbolic(x.graph, value).ids.to_array(np.int64)
            result = x.reading(Ids.spaced(ids))
        else:
            result = where(condition, value, result)
    return result


def _cases(x: Symbolic, conditions: Any, values: list) -> list[tuple[Any, Any]]:
    """Pairs of a condition and its value; later ones win."""
    unknown = is_symbolic(conditions)
    alone = isinstance(conditions, Symbolic) or (not unknown and np.ndim(conditions) <= min(x.ndim, 1))
    listed = [c if isinstance(c, Symbolic) else np.asarray(c, bool) for c in ([conditions] if alone else conditions)]
    if len(values) == len(listed) + 1:
        otherwise = np.ones(x.shape, bool) if unknown else ~np.logical_or.reduce(listed)
        return [(otherwise, values[-1]), *zip(listed, values, strict=False)]
    if len(values) != len(listed):
        n = len(listed)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    return list(zip(listed, values, strict=True))


implements_call(np.piecewise, piecewise)


# -- arithmetic -------------------------------------------------------------------------------------


@implements(np.positive, np.conjugate)
def positive(x: Symbolic) -> Symbolic:
    return x.copy()


@implements(np.real)
def real(val: Symbolic) -> Symbolic:
    return val.sharing(lambda ids: ids)


@implements(np.fabs)
def fabs(x: Any) -> Symbolic:
    return apply("absolute", x)


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0) -> Symbolic:
    """To even where two are as near."""
    scale = 10.0 ** abs(decimals)
    if decimals >= 0:
        return apply("rint", a * scale) / scale if decimals else apply("rint", a)
    return apply("rint", a / scale) * scale


@implements(np.fix)
def fix(x: Any) -> Symbolic:
    return apply("trunc", x)


@implements(np.floor_divide)
def floor_divide(x: Any, y: Any) -> Symbolic:
    """The whole number that is near what is left without the remainder."""
    x, y = numbers(x, y)
    rest = np.fmod(x, y)
    quotient = where(y == 0, x, x - rest) / y
    quotient = where((rest != 0) & ((rest < 0) ^ (y < 0)), quotient - 1.0, quotient)
    whole = np.floor(quotient)
    whole = where(quotient - whole > 0.5, whole + 1.0, whole)
    return where(quotient == 0, np.copysign(0.0, x) * np.copysign(1.0, y), whole)


@implements(np.divmod)
def divmod_(x: Any, y: Any) -> tuple[Symbolic, Symbolic]:
    return floor_divide(x, y), np.remainder(x, y)


@implements(np.modf)
def modf(x: Any) -> tuple[Symbolic, Symbolic]:
    whole = apply("trunc", x)
    rest = where(np.isinf(x), 0.0, x - whole)
    return np.copysign(rest, x), whole


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Symbolic:
    a, b = numbers(a, b)
    is_near = (apply("absolute", a - b) <= rtol * apply("absolute", b) + atol) & np.isfinite(b)
    is_close = is_near | (a == b)
    return is_close | (np.isnan(a) & np.isnan(b)) if equal_nan else is_close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return np.all(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    return np.shape(a1) == np.shape(a2) and _are_equal(a1, a2, equal_nan)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return False
    return _are_equal(a1, a2, False)


def _are_equal(a: Any, b: Any, equal_nan: bool) -> Any:
    a, b = numbers(a, b)
    return np.all((a == b) | (np.isnan(a) & np.isnan(b)) if equal_nan else a == b)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Symbolic:
    """Infinities become the largest numbers of double precision, unless others are given."""
    if not copy:
        raise UnsupportedError("np.nan_to_num with copy=False is not supported", "write x[:] = np.nan_to_num(x)")
    largest = np.finfo(np.float64).max
    high, low = (largest if posinf is None else posinf), (-largest if neginf is None else neginf)
    found = where(x == np.inf, high, where(x == -np.inf, low, x))
    return where(np.isnan(x), nan, found)


@implements(np.logaddexp)
def logaddexp(x: Any, y: Any) -> Symbolic:
    """The exponential of a difference never overflows; that of two equal infinities is not formed."""
    x, y = numbers(x, y)
    larger = apply("maximum", x, y)
    apart = apply("where", apply("equal", x, y), 0.0, x - y)
    return larger + apply("log1p", apply("exp", -apply("absolute", apart)))


@implements(np.logaddexp2)
def logaddexp2(x: Any, y: Any) -> Symbolic:
    [x, y] = numbers(x, y)
    return logaddexp(x * np.log(2.0), y * np.log(2.0)) / np.log(2.0)


@implements(np.heaviside)
def heaviside(x1: Any, x2: Any) -> Symbolic:
    x1, x2 = numbers(x1, x2)
    return where(x1 < 0, 0.0, where(x1 > 0, 1.0, where(np.isnan(x1), x1, x2)))


@implements(np.sinc)
def sinc(x: Any) -> Symbolic:
    [x] = numbers(x)
    angle = np.pi * x
    return where(x == 0, 1.0, np.sin(angle) / where(x == 0, 1.0, angle))


@implements(np.signbit)
def signbit(x: Any) -> Symbolic:
    return np.copysign(1.0, x) < 0


@implements(np.isposinf)
def isposinf(x: Any) -> Symbolic:
    [x] = numbers(x)
    return x == np.inf


@implements(np.isneginf)
def isneginf(x: Any) -> Symbolic:
    [x] = numbers(x)
    return x == -np.inf


@implements(np.degrees, np.rad2deg)
def degrees(x: Any) -> Symbolic:
    return apply("multiply", x, 180 / np.pi)


@implements(np.radians, np.deg2rad)
def radians(x: Any) -> Symbolic:
    return apply("multiply", x, np.pi / 180)


@implements(np.power, np.float_power)
def power(x: Any, exponent: Any) -> Symbolic:
    """Integers and halves known while tracing by multiplications and roots, others by the C library's ``pow``."""
    if isinstance(exponent, (Symbolic, complex)) or np.ndim(exponent):
        return apply("power", x, exponent)
    doubled = 2 * float(exponent)
    if not np.isfinite(doubled) or doubled != int(doubled) or abs(doubled) > 128:
        return apply("power", x, exponent)
    whole, half = divmod(abs(int(doubled)), 2)
    if half and doubled != 1:  # pow does not see the signs of zero and infinity; of x**0.5 NumPy makes a root
        x = where(x == -np.inf, np.inf, x)
        x = x if whole else x + 0.0
    factors = ([apply("sqrt", x)] if half else []) + ([_integer_power(x, whole)] if whole else [])
    result = as_symbolic(x.graph, np.ones(x.shape)) if not factors else factors[0]
    for f in factors[1:]:
        result = result * f
    result = result.copy() if result is x else result
    return apply("divide", 1.0, result) if doubled < 0 else result


def _integer_power(x: Symbolic, exponent: int) -> Symbolic:
    """By repeated squaring."""
    if exponent == 1:
        return x
    root = _integer_power(x, exponent // 2)
    return root * root * x if exponent % 2 else root * root


@implements(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Symbolic:
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ValueError("passing `min` or `max` beside `a_min` or `a_max` is not supported")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    result = a if low is None else apply("maximum", a, low)
    return result if high is None else apply("minimum", result, high)


@implements_method("outer", *(f for f, row in BY_UFUNC.items() if row.arity == 2))
def outer_of(ufunc: np.ufunc, a: Any, b: Any) -> Symbolic:
    """Every entry of ``a`` with every entry of ``b``."""
    a, b = all_symbolic(a, b)
    return ufunc(a[(..., *(None,) * b.ndim)], b)
