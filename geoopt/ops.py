"""The table of operations: one row each, everything a stage needs to know about it.

``llvm`` is a template over vector operands: ``{t}`` is the vector type, ``{n}`` its overload suffix,
``{f}`` the fast-math flags, ``{0} {1} {2}`` the operands. ``field`` evaluates the operation on integers
modulo the prime of `hashing`; operations without one are opaque to the algebraic hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PRIME = (1 << 61) - 1


@dataclass(frozen=True)
class Op:
    """One operation on scalars. ``cost`` is in multiply-adds of throughput."""

    name: str
    arity: int
    cost: int
    numpy: Callable
    llvm: str
    text: str
    is_commutative: bool = False
    gives_bool: bool = False
    field: Callable[..., int] | None = None


def _inverse(x: int) -> int:
    return pow(x, PRIME - 2, PRIME)


def _intrinsic(name: str, arity: int) -> str:
    operands = ", ".join(f"{{t}} {{{i}}}" for i in range(arity))
    return f"call {{f}} {{t}} @llvm.{name}.{{n}}({operands})"


def _compare(name: str, predicate: str, symbol: str, function: Callable) -> Op:
    llvm = f"fcmp {predicate} {{t}} {{0}}, {{1}}"
    commutes = name in ("equal", "not_equal")
    return Op(name, 2, 1, function, llvm, f"({{0}} {symbol} {{1}})", commutes, gives_bool=True)


_ROWS = (
    Op("add", 2, 1, np.add, "fadd {f} {t} {0}, {1}", "({0} + {1})", True, field=lambda x, y: x + y),
    Op("subtract", 2, 1, np.subtract, "fsub {f} {t} {0}, {1}", "({0} - {1})", field=lambda x, y: x - y),
    Op("multiply", 2, 1, np.multiply, "fmul {f} {t} {0}, {1}", "({0} * {1})", True, field=lambda x, y: x * y),
    Op("divide", 2, 8, np.divide, "fdiv {f} {t} {0}, {1}", "({0} / {1})", field=lambda x, y: x * _inverse(y)),
    Op("negative", 1, 1, np.negative, "fneg {f} {t} {0}", "(-{0})", field=lambda x: -x),
    Op("absolute", 1, 1, np.absolute, _intrinsic("fabs", 1), "abs({0})"),
    Op("sqrt", 1, 10, np.sqrt, _intrinsic("sqrt", 1), "sqrt({0})"),
    Op("minimum", 2, 1, np.minimum, _intrinsic("minimum", 2), "min({0}, {1})", True),
    Op("maximum", 2, 1, np.maximum, _intrinsic("maximum", 2), "max({0}, {1})", True),
    _compare("less", "olt", "<", np.less),
    _compare("less_equal", "ole", "<=", np.less_equal),
    _compare("greater", "ogt", ">", np.greater),
    _compare("greater_equal", "oge", ">=", np.greater_equal),
    _compare("equal", "oeq", "==", np.equal),
    _compare("not_equal", "une", "!=", np.not_equal),
    Op("where", 3, 1, np.where, "select {b} {0}, {t} {1}, {t} {2}", "where({0}, {1}, {2})"),
)

OPS: dict[str, Op] = {row.name: row for row in _ROWS}
BY_UFUNC: dict[np.ufunc, Op] = {row.numpy: row for row in _ROWS if isinstance(row.numpy, np.ufunc)}
