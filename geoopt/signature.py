"""What `trace` gives besides the graph: how arguments become variables, and arrays of outputs the result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import ArgumentError
from .results import Matrix, Part
from .stored_matrices import with_values


@dataclass(frozen=True)
class Argument:
    """One variable of the program, as its caller passes it."""

    name: str
    shape: tuple[int, ...]
    pattern: sp.csr_array | None = None  # of a sparse matrix; its values are the variable

    def of_batch(self, size: int) -> Argument:
        """The same with a value for each item."""
        return replace(self, shape=(size, *self.shape))


@dataclass(frozen=True, eq=False)
class Signature:
    """How calls of the program map to the graph's variables and back to results."""

    function: str
    arguments: tuple[Argument, ...]
    result: Part
    has_numbers: bool  # the last output holds the result's numbers and comparisons
    has_comparisons: bool
    paths: int  # through branches of the function, between whose results the program chooses

    @property
    def may_fail(self) -> bool:
        """Whether a system that cannot be solved is an error only where a result is NaN by it: it may be that of a path
        which is not taken. Comparisons do not tell what they compare."""
        return self.paths > 1 and not self.has_comparisons

    def of_batch(self, size: int, over: Collection[str]) -> Signature:
        """For a batch of so many items. over : the variables with a value for each of them"""
        arguments = tuple(a.of_batch(size) if a.name in over else a for a in self.arguments)
        return replace(self, arguments=arguments, result=self.result.of_batch(size))

    def ordered(self, values: tuple, named: dict[str, Any]) -> Sequence[Any]:
        return ordered(self.function, self.arguments, values, named)

    def rebuild(self, arrays: list, matrix: Matrix = with_values) -> Any:
        """The result of a call. arrays : the outputs in their shapes;  matrix : of a pattern and values"""
        return self.result.rebuilt(arrays, matrix)

    def collect(self, old: Any) -> list[np.ndarray]:
        """The arrays of an earlier result that are outputs, but for that of its numbers.

        TypeError, ValueError, KeyError or AttributeError where it has another structure or pattern."""
        return self.result.collected(old)


def ordered(function: str, arguments: Sequence[Argument], values: tuple, named: dict[str, Any]) -> Sequence[Any]:
    """The values of a call in the order of the variables; ArgumentError where they are not one for each."""
    if not named and len(values) == len(arguments):
        return values
    names = [a.name for a in arguments]
    if len(values) > len(names):
        raise ArgumentError(
            f"{function} takes {len(names)} variables ({', '.join(names)}), {len(values)} were given; of what "
            "compile was given, arrays of floats are variables, integers and lists are structure"
        )
    given = dict(zip(names[: len(values)], values, strict=True))
    for name, value in named.items():
        if name not in names or name in given:
            what = "was given twice" if name in given else f"is unknown; the variables are {', '.join(names)}"
            raise ArgumentError(f"variable {name!r} {what}")
        given[name] = value
    missing = [n for n in names if n not in given]
    if missing:
        raise ArgumentError(f"variable {missing[0]!r} is missing; call with {', '.join(names)}")
    return [given[name] for name in names]
