"""Numbers of a program's type; how CUDA C writes them and the types."""

from __future__ import annotations

import numpy as np

TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint64": "unsigned long long",
    "uint32": "unsigned int",
    "uint16": "unsigned short",
    "uint8": "unsigned char",
}


def rounded(value: float, dtype: np.dtype) -> np.floating:
    """The number of a type that is nearest to one. The largest is the largest of any type, for code that asks NumPy for
    it gets that of double precision."""
    if abs(value) == np.finfo(np.float64).max:
        return dtype.type(np.copysign(np.finfo(dtype).max, value))
    with np.errstate(over="ignore"):
        return dtype.type(value)


def literal(value: float, dtype: np.dtype) -> str:
    """The shortest text that stands for exactly this number."""
    number = rounded(value, dtype)
    suffix = "f" if dtype == np.float32 else ""
    if not np.isfinite(number):
        top = {"nan": "0.0", "inf": "1.0", "-inf": "-1.0"}[str(number)]
        return f"({top}{suffix} / 0.0{suffix})"
    return f"({number!s}{suffix})" if np.signbit(number) else f"{number!s}{suffix}"
