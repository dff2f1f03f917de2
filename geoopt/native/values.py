"""The values of a compiled function, and their types.

Integers are 64 bits wide and have signs, whatever array they are read from; what is read from arrays of uint64, and
what ``np.uint64`` makes, are *words*: numbers modulo 2^64. The two do not mix.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

INT, WORD, FLOAT, BOOL = "int", "word", "float", "bool"
TASK = "task"  # the type of a function's last argument where what is given are a task's words
REGISTERS = {INT: "i64", WORD: "i64", FLOAT: "double", BOOL: "i1"}


@dataclass(frozen=True)
class Array:
    """The type of an array; its parts are the address, the lengths of its axes, and unless it is contiguous, in C's
    order, their strides in bytes."""

    dtype: np.dtype
    axes: int
    is_contiguous: bool

    @property
    def parts(self) -> int:
        return 1 + self.axes * (1 if self.is_contiguous else 2)


@dataclass(frozen=True)
class Arrays:
    """The type of a tuple of arrays of one type; its parts are where those of the arrays are listed, and how many there
    are."""

    kind: Array


Type = str | Array | Arrays


class Value(NamedTuple):
    """What an expression gives. parts : LLVM's names or literals;  constant : what is known of it, an `int` of Python's
    being whatever type is needed"""

    type: Type
    parts: tuple[str, ...]
    constant: object = None

    @property
    def text(self) -> str:
        return self.parts[0]

    @property
    def is_literal(self) -> bool:
        return type(self.constant) is int


def constant(value: object) -> Value:
    """A number of Python's or NumPy's."""
    if type(value) in (bool, np.bool_):
        return Value(BOOL, (str(bool(value)).lower(),), bool(value))
    if type(value) is np.uint64:
        return Value(WORD, (str(value),), value)
    if isinstance(value, int | np.integer):
        return Value(INT, (str(value),), value)
    if isinstance(value, float):
        return Value(FLOAT, (f"0x{struct.pack('>d', value).hex()}",), value)
    raise TypeError(f"{value!r} is no constant that loops may use")


def part_types(kind: Type) -> list[str]:
    """LLVM's types of the parts of a value."""
    if isinstance(kind, Array):
        return ["ptr", *["i64"] * (kind.parts - 1)]
    return ["ptr", "i64"] if isinstance(kind, Arrays) else [REGISTERS[kind]]


def element(dtype: np.dtype) -> str:
    """LLVM's type of an entry in memory."""
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return "float" if dtype.itemsize == 4 else "double"
    if dtype.kind in "iub":
        return f"i{8 * dtype.itemsize}"
    raise TypeError(f"arrays of {dtype} are not supported")
