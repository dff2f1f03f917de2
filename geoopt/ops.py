"""The table of operations: one row each, everything a stage needs to know about it.

A row is *primitive* or has a ``meaning``: what it stands for in terms of other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# (PRIME - 1) / 2 is prime too, so that no small number has a short cycle of powers: modulo the handier 2^61 - 1,
# x / 2^61 equals x, and sixty-one steps of y / 2 + x would be found equal to none
PRIME = (1 << 89) - 3285


@dataclass(frozen=True)
class Op:
    """One operation on scalars.

    cost : in multiply-adds of throughput
    numpy : what it computes, on arrays of floats
    llvm : a template over vector operands: ``{t}`` is the vector type, ``{n}`` its overload suffix, ``{b}`` the type
        of comparisons, ``{f}`` the fast-math flags, ``{0} {1} {2}`` the operands, ``{r0} {r1} ...`` the results of the
        lines before. Empty for functions of ``libm``
    libm : the name of the C function, of which vector versions are used where the machine has them
    c : C and CUDA source over the operands
    derivative : the partial derivatives, from the result and the operands. Where there is none, it is what IEEE
        arithmetic makes of the formula: infinite for sqrt and cbrt at 0 and for asin and acos at 1 and -1, but 0 for
        absolute at 0
    choice : of an operation whose result is one of its last two operands, the condition under which it is the first;
        its derivative is that of the operand chosen. Of equal operands, minimum and maximum choose one
    field : the operation on integers modulo ``PRIME``; without one it is opaque to the algebraic hash
    meaning : the operation in terms of others, on arrays of any kind
    """

    name: str
    arity: int
    cost: int
    numpy: Callable
    llvm: str = ""
    libm: str = ""
    c: str = ""
    derivative: Callable[..., tuple] | None = None
    choice: Callable[..., Any] | None = None
    is_commutative: bool = False
    gives_bool: bool = False
    takes_bool: bool = False
    field: Callable[..., int] | None = None
    meaning: Callable[..., Any] | None = None

    @property
    def text(self) -> str:
        """Source that people read: Python-like, which for most rows is C as well."""
        return _TEXTS.get(self.name, self.c)


def _inverse(x: int) -> int:
    return pow(x, -1, PRIME)


def _arithmetic() -> list[Op]:
    return [
        Op("add", 2, 1, np.add, "fadd {f} {t} {0}, {1}", c="({0} + {1})", is_commutative=True,
           derivative=lambda r, x, y: (1.0, 1.0), field=lambda x, y: x + y),
        Op("subtract", 2, 1, np.subtract, "fsub {f} {t} {0}, {1}", c="({0} - {1})",
           derivative=lambda r, x, y: (1.0, -1.0), field=lambda x, y: x - y),
        Op("multiply", 2, 1, np.multiply, "fmul {f} {t} {0}, {1}", c="({0} * {1})", is_commutative=True,
           derivative=lambda r, x, y: (y, x), field=lambda x, y: x * y),
        Op("divide", 2, 8, np.divide, "fdiv {f} {t} {0}, {1}", c="({0} / {1})",
           derivative=lambda r, x, y: (1.0 / y, -r / y), field=lambda x, y: x * _inverse(y)),
        Op("negative", 1, 1, np.negative, "fneg {f} {t} {0}", c="(-{0})",
           derivative=lambda r, x: (-1.0,), field=lambda x: -x),
        Op("reciprocal", 1, 8, np.reciprocal, meaning=lambda x: 1.0 / x),
        Op("square", 1, 1, np.square, meaning=lambda x: x * x),
    ]  # fmt: skip


def _intrinsic(name: str, arity: int) -> str:
    operands = ", ".join(f"{{t}} {{{i}}}" for i in range(arity))
    return f"call {{f}} {{t}} @llvm.{name}.{{n}}({operands})"


def _extreme(predicate: str) -> str:
    """NaN where either operand is; of two zeros the second, as NumPy has it on x86-64, and its instruction."""
    return "\n".join((
        f"fcmp {predicate} {{t}} {{0}}, {{1}}", "select {b} {r0}, {t} {0}, {t} {1}",
        "fcmp uno {t} {0}, {0}", "select {b} {r2}, {t} {0}, {t} {r1}",
    ))  # fmt: skip


def _sign(x: Any) -> Any:
    """+0 for both zeros, as NumPy has it, and NaN for NaN."""
    return np.where(x > 0, 1.0, np.where(x < 0, -1.0, np.where(x == 0, 0.0, x)))


def _but_nan(x: Any, y: Any, chosen: Any) -> Any:
    """What was chosen of two numbers, but where one is NaN the other."""
    return np.where(x != x, y, np.where(y != y, x, chosen))


def _roots_and_choices() -> list[Op]:
    return [
        Op("sqrt", 1, 10, np.sqrt, _intrinsic("sqrt", 1), c="sqrt({0})", derivative=lambda r, x: (0.5 / r,)),
        Op("absolute", 1, 1, np.absolute, _intrinsic("fabs", 1), c="fabs({0})",
           derivative=lambda r, x: (np.sign(x),)),
        Op("sign", 1, 2, np.sign, meaning=_sign),
        Op("minimum", 2, 1, np.minimum, _extreme("olt"), c="({0} < {1} || {0} != {0} ? {0} : {1})",
           choice=lambda x, y: x <= y),
        Op("maximum", 2, 1, np.maximum, _extreme("ogt"), c="({0} > {1} || {0} != {0} ? {0} : {1})",
           choice=lambda x, y: x >= y),
        Op("copysign", 2, 1, np.copysign, _intrinsic("copysign", 2), c="copysign({0}, {1})",
           derivative=lambda r, x, y: (np.copysign(1.0, x) * np.copysign(1.0, y), 0.0)),
        Op("fmin", 2, 3, np.fmin, meaning=lambda x, y: _but_nan(x, y, np.minimum(x, y))),
        Op("fmax", 2, 3, np.fmax, meaning=lambda x, y: _but_nan(x, y, np.maximum(x, y))),
        Op("where", 3, 1, np.where, "select {b} {0}, {t} {1}, {t} {2}", c="({0} ? {1} : {2})", takes_bool=True,
           choice=lambda c, x, y: c),
    ]  # fmt: skip


def _rounding() -> list[Op]:
    """To integers; their derivatives are 0, also where they jump."""
    return [
        Op(name, 1, 2, function, _intrinsic(name, 1), c=f"{name}({{0}})", derivative=lambda r, x: (0.0,))
        for name, function in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rint", np.rint))
    ] + [Op("remainder", 2, 32, np.remainder, meaning=_remainder)]


def _remainder(x: Any, y: Any) -> Any:
    """With the sign of the divisor."""
    rest = np.fmod(x, y)
    return np.where(rest == 0, np.copysign(0.0, y), np.where((rest < 0) ^ (y < 0), rest + y, rest))


def _function(libm: str, cost: int, function: np.ufunc, derivative: Callable[..., tuple]) -> Op:
    operands = ", ".join(f"{{{i}}}" for i in range(function.nin))
    return Op(
        function.__name__, function.nin, cost, function, libm=libm, c=f"{libm}({operands})", derivative=derivative
    )


def _special(name: str) -> Callable:
    """One of SciPy's functions, which is loaded when it is needed."""

    def function(x: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(x.astype(float) if x.dtype == np.longdouble else x)

    return function


def _error_functions() -> list[Op]:
    slope = 2 / np.sqrt(np.pi)  # of erf at 0
    return [
        Op("erf", 1, 25, _special("erf"), libm="erf", c="erf({0})",
           derivative=lambda r, x: (slope * np.exp(-x * x),)),
        Op("erfc", 1, 25, _special("erfc"), libm="erfc", c="erfc({0})",
           derivative=lambda r, x: (-slope * np.exp(-x * x),)),
    ]  # fmt: skip


def _digamma(x: Any) -> Any:
    """The derivative of log(gamma), of which this is better than 1e-13 but near its zeros: by reflection at 1/2, eight
    steps of psi(y) = psi(y + 1) - 1 / y, two of which have one denominator, and Stirling's series. Beyond 1e8, where
    gamma is infinite, 0 or NaN, it is what it is there."""
    is_left = x < 0.5
    y = np.minimum(np.where(is_left, 1.0 - x, x), 1e8)
    t, z = y * (y + 7.0), y + 8.0
    steps = (2.0 * y + 7.0) * (1.0 / t + 1.0 / (t + 6.0) + 1.0 / (t + 10.0) + 1.0 / (t + 12.0))
    w, series = 1.0 / (z * z), 0.0
    for coefficient in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):  # Bernoulli's B(2 n) / (2 n)
        series = (series + coefficient) * w
    right = np.log(z) - 0.5 / z - series - steps
    to_pole = np.where(x == 0.0, x, x - np.rint(x))  # with the sign of a zero
    return np.where(is_left, right - np.pi / np.tan(np.pi * to_pole), right)


def _gamma() -> list[Op]:
    return [
        Op("gamma", 1, 300, _special("gamma"), libm="tgamma", c="tgamma({0})",
           derivative=lambda r, x: (r * _digamma(x),)),
    ]  # fmt: skip


def _functions() -> list[Op]:
    return [
        _function("cbrt", 20, np.cbrt, lambda r, x: (1.0 / (3.0 * r * r),)),
        _function("exp", 12, np.exp, lambda r, x: (r,)),
        _function("exp2", 12, np.exp2, lambda r, x: (np.log(2.0) * r,)),
        _function("expm1", 15, np.expm1, lambda r, x: (r + 1.0,)),
        _function("log", 15, np.log, lambda r, x: (1.0 / x,)),
        _function("log2", 15, np.log2, lambda r, x: (1.0 / (np.log(2.0) * x),)),
        _function("log10", 15, np.log10, lambda r, x: (1.0 / (np.log(10.0) * x),)),
        _function("log1p", 18, np.log1p, lambda r, x: (1.0 / (1.0 + x),)),
        _function("sin", 15, np.sin, lambda r, x: (np.cos(x),)),
        _function("cos", 15, np.cos, lambda r, x: (-np.sin(x),)),
        _function("tan", 20, np.tan, lambda r, x: (1.0 + r * r,)),
        _function("asin", 20, np.arcsin, lambda r, x: (1.0 / np.sqrt(1.0 - x * x),)),
        _function("acos", 20, np.arccos, lambda r, x: (-1.0 / np.sqrt(1.0 - x * x),)),
        _function("atan", 20, np.arctan, lambda r, x: (1.0 / (1.0 + x * x),)),
        _function("atan2", 30, np.arctan2, lambda r, y, x: (x / (x * x + y * y), -y / (x * x + y * y))),
        _function("sinh", 20, np.sinh, lambda r, x: (np.cosh(x),)),
        _function("cosh", 20, np.cosh, lambda r, x: (np.sinh(x),)),
        _function("tanh", 20, np.tanh, lambda r, x: (1.0 - r * r,)),
        _function("asinh", 25, np.arcsinh, lambda r, x: (1.0 / np.sqrt(x * x + 1.0),)),
        _function("acosh", 25, np.arccosh, lambda r, x: (1.0 / (np.sqrt(x - 1.0) * np.sqrt(x + 1.0)),)),
        _function("atanh", 25, np.arctanh, lambda r, x: (1.0 / ((1.0 - x) * (1.0 + x)),)),
        _function("hypot", 25, np.hypot, lambda r, x, y: (x / r, y / r)),
        _function("fmod", 30, np.fmod, lambda r, x, y: (1.0, -np.trunc(x / y))),
        _function("pow", 40, np.power, lambda r, x, y: (y * np.power(x, y - 1.0), r * np.log(x))),
    ]


def _comparison(name: str, predicate: str, symbol: str, function: Callable) -> Op:
    llvm = f"fcmp {predicate} {{t}} {{0}}, {{1}}"
    commutes = name in ("equal", "not_equal")
    return Op(name, 2, 1, function, llvm, c=f"({{0}} {symbol} {{1}})", is_commutative=commutes, gives_bool=True)


def _logic(name: str, llvm: str, c: str, function: np.ufunc) -> Op:
    return Op(
        name, function.nin, 1, function, llvm, c=c, is_commutative=function.nin == 2, gives_bool=True, takes_bool=True
    )


def _conditions() -> list[Op]:
    """What only `where` may consume."""
    return [
        _comparison("less", "olt", "<", np.less),
        _comparison("less_equal", "ole", "<=", np.less_equal),
        _comparison("greater", "ogt", ">", np.greater),
        _comparison("greater_equal", "oge", ">=", np.greater_equal),
        _comparison("equal", "oeq", "==", np.equal),
        _comparison("not_equal", "une", "!=", np.not_equal),
        _logic("logical_and", "and {b} {0}, {1}", "({0} && {1})", np.logical_and),
        _logic("logical_or", "or {b} {0}, {1}", "({0} || {1})", np.logical_or),
        _logic("logical_xor", "xor {b} {0}, {1}", "({0} != {1})", np.logical_xor),
        _logic("logical_not", "xor {b} {0}, splat (i1 true)", "(!{0})", np.logical_not),
        Op("isnan", 1, 1, np.isnan, gives_bool=True, meaning=lambda x: x != x),
        Op("isinf", 1, 2, np.isinf, gives_bool=True, meaning=lambda x: np.absolute(x) == np.inf),
        Op("isfinite", 1, 2, np.isfinite, gives_bool=True, meaning=lambda x: np.absolute(x) < np.inf),
    ]


_TEXTS = {
    "absolute": "abs({0})",
    "minimum": "min({0}, {1})",
    "maximum": "max({0}, {1})",
    "where": "where({0}, {1}, {2})",
    "logical_and": "({0} & {1})",
    "logical_or": "({0} | {1})",
    "logical_xor": "({0} ^ {1})",
    "logical_not": "(~{0})",
}
ROWS: tuple[Op, ...] = (
    *(*_arithmetic(), *_roots_and_choices(), *_rounding()),
    *(*_functions(), *_error_functions(), *_gamma(), *_conditions()),
)

# rows that nodes and templates are made of
OPS: dict[str, Op] = {row.name: row for row in ROWS if row.meaning is None}
BY_UFUNC: dict[np.ufunc, Op] = {row.numpy: row for row in ROWS if isinstance(row.numpy, np.ufunc)}
BY_UFUNC |= {
    np.bitwise_and: OPS["logical_and"],
    np.bitwise_or: OPS["logical_or"],
    np.bitwise_xor: OPS["logical_xor"],
    np.bitwise_not: OPS["logical_not"],
}
