"""Types and numbers in CUDA C."""

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


def literal(value: float, dtype: np.dtype) -> str:
    """The shortest text that stands for exactly this number."""
    with np.errstate(over="ignore"):
        number = dtype.type(value)
    suffix = "f" if dtype == np.float32 else ""
    if not np.isfinite(number):
        top = {"nan": "0.0", "inf": "1.0", "-inf": "-1.0"}[str(number)]
        return f"({top}{suffix} / 0.0{suffix})"
    return f"({number!s}{suffix})" if np.signbit(number) else f"{number!s}{suffix}"
