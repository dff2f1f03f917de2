"""What a traced function returns, as parts: how the arrays of a call are put together to it, and found in it again.

Of a batch, outputs have an axis in front of their own, and so have the arrays of the result; see `Part.of_batch`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .stored_matrices import index_arrays

Matrix = Callable[[Any, Any], Any]  # of a matrix without values, and values


class Part:
    """A part of a result."""

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        """This part of the result of a call. arrays : the outputs of the program, in their shapes"""
        raise NotImplementedError

    def collected(self, old: Any) -> list[np.ndarray]:
        """The arrays that are outputs, in this part of an earlier result; raises where it has another structure."""
        return []

    def inner(self) -> Iterable[tuple[str, Part]]:
        """The parts that it is made of, each with what Python writes after the part to have it."""
        return ()

    def of_batch(self, size: int) -> Part:
        """This part of the results of so many items: what NumPy can stack is one array, other parts are lists."""
        return OfEach(size, self)


@dataclass(frozen=True)
class OfArray(Part):
    """The output with a number."""

    output: int

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return arrays[self.output]

    def collected(self, old: Any) -> list[np.ndarray]:
        return [old]

    def of_batch(self, size: int) -> Part:
        return self


@dataclass(frozen=True, eq=False)
class OfMatrix(Part):
    """A sparse matrix whose values are an output. pattern : of SciPy's, without values"""

    output: int
    pattern: Any

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return matrix(self.pattern, arrays[self.output])

    def collected(self, old: Any) -> list[np.ndarray]:
        if type(old) is not type(self.pattern) or old.shape != self.pattern.shape:
            raise TypeError
        if not all(map(np.array_equal, index_arrays(old), index_arrays(self.pattern))):
            raise TypeError
        return [old.data]

    def of_batch(self, size: int) -> Part:
        return OfMatrices(size, self)


@dataclass(frozen=True, eq=False)
class OfMatrices(Part):
    """A list of a sparse matrix of each item of a batch."""

    size: int
    of_item: OfMatrix

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        pattern = self.of_item.pattern
        return [matrix(pattern, values) for values in arrays[self.of_item.output]]

    def collected(self, old: Any) -> list[np.ndarray]:
        if not isinstance(old, list) or len(old) != self.size:
            raise TypeError
        return [_stacked([a for one in old for a in self.of_item.collected(one)])]


@dataclass(frozen=True)
class OfNumber(Part):
    """A number: an entry of the last output, which holds all numbers of the result. It is not found again: numbers are
    not written in place."""

    entry: int

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return arrays[-1][self.entry]

    def of_batch(self, size: int) -> Part:
        return OfNumbers(self.entry)


@dataclass(frozen=True)
class OfNumbers(Part):
    """A number of each item of a batch."""

    entry: int

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return arrays[-1][:, self.entry].copy()


@dataclass(frozen=True)
class OfComparison(Part):
    """Booleans: entries of the last output, 0 where they are false."""

    begin: int
    shape: tuple[int, ...]

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        end = self.begin + math.prod(self.shape)
        return arrays[-1][self.begin : end].reshape(self.shape)[()] != 0

    def of_batch(self, size: int) -> Part:
        return OfComparisons(size, self.begin, self.shape)


@dataclass(frozen=True)
class OfComparisons(Part):
    """Booleans of each item of a batch."""

    size: int
    begin: int
    shape: tuple[int, ...]

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        end = self.begin + math.prod(self.shape)
        return arrays[-1][:, self.begin : end].reshape(self.size, *self.shape) != 0


@dataclass(frozen=True)
class OfNumPyMatrix(Part):
    """An ``np.matrix`` of a part."""

    part: Part

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return np.asmatrix(self.part.rebuilt(arrays, matrix))

    def collected(self, old: Any) -> list[np.ndarray]:
        return self.part.collected(np.asarray(old))

    def inner(self) -> Iterable[tuple[str, Part]]:
        return [("", self.part)]


@dataclass(frozen=True)
class OfSequence(Part):
    """A tuple, a list or a named tuple."""

    kind: type
    parts: tuple[Part, ...]

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        values = [part.rebuilt(arrays, matrix) for part in self.parts]
        return self.kind(*values) if hasattr(self.kind, "_fields") else self.kind(values)

    def collected(self, old: Any) -> list[np.ndarray]:
        return [a for part, piece in zip(self.parts, list(old), strict=True) for a in part.collected(piece)]

    def inner(self) -> Iterable[tuple[str, Part]]:
        return ((f"[{number}]", part) for number, part in enumerate(self.parts))

    def of_batch(self, size: int) -> Part:
        return replace(self, parts=tuple(part.of_batch(size) for part in self.parts))


@dataclass(frozen=True)
class OfDict(Part):
    keys: tuple[Any, ...]
    parts: tuple[Part, ...]

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return {key: part.rebuilt(arrays, matrix) for key, part in zip(self.keys, self.parts, strict=True)}

    def collected(self, old: Any) -> list[np.ndarray]:
        return [a for key, part in zip(self.keys, self.parts, strict=True) for a in part.collected(old[key])]

    def inner(self) -> Iterable[tuple[str, Part]]:
        return ((f"[{key!r}]", part) for key, part in zip(self.keys, self.parts, strict=True))

    def of_batch(self, size: int) -> Part:
        return replace(self, parts=tuple(part.of_batch(size) for part in self.parts))


@dataclass(frozen=True)
class OfDataclass(Part):
    """names : of its fields, which ``kind`` is called with"""

    kind: type
    names: tuple[str, ...]
    parts: tuple[Part, ...]

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        fields = zip(self.names, self.parts, strict=True)
        return self.kind(**{name: part.rebuilt(arrays, matrix) for name, part in fields})

    def collected(self, old: Any) -> list[np.ndarray]:
        return [
            a for name, part in zip(self.names, self.parts, strict=True) for a in part.collected(getattr(old, name))
        ]

    def inner(self) -> Iterable[tuple[str, Part]]:
        return ((f".{name}", part) for name, part in zip(self.names, self.parts, strict=True))

    def of_batch(self, size: int) -> Part:
        return replace(self, parts=tuple(part.of_batch(size) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Known(Part):
    """What does not depend on the variables; arrays and matrices are fresh for each call."""

    value: Any
    is_copied: bool

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return self.value.copy() if self.is_copied else self.value

    def of_batch(self, size: int) -> Part:
        if isinstance(self.value, bool | int | float | np.generic | np.ndarray) and type(self.value) is not np.matrix:
            return Known(np.broadcast_to(self.value, (size, *np.shape(self.value))), True)
        return OfEach(size, self) if sp.issparse(self.value) or type(self.value) is np.matrix else self


@dataclass(frozen=True)
class OfEach(Part):
    """A list of a part of each item of a batch."""

    size: int
    of_item: Part

    def rebuilt(self, arrays: list, matrix: Matrix) -> Any:
        return [self.of_item.rebuilt([a[item] for a in arrays], matrix) for item in range(self.size)]

    def collected(self, old: Any) -> list[np.ndarray]:
        if not isinstance(old, list) or len(old) != self.size:
            raise TypeError
        return [_stacked(list(arrays)) for arrays in zip(*map(self.of_item.collected, old), strict=True)]


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """The array whose rows some arrays are; TypeError where they do not lie at equal distances in one memory."""
    first, *others = arrays
    if not others:
        return first[None]
    step = others[0].ctypes.data - first.ctypes.data
    places = [first.ctypes.data + step * item for item in range(len(arrays))]
    alike = all(a.dtype == first.dtype and a.shape == first.shape and a.base is first.base for a in others)
    if not alike or first.base is None or [a.ctypes.data for a in arrays] != places or step < first.nbytes:
        raise TypeError
    return np.lib.stride_tricks.as_strided(first, (len(arrays), *first.shape), (step, *first.strides))
