"""Functions that solve linear systems, as functions that compute what is before, between and after the solutions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedError
from ..sparse.matrix import SparseMatrix
from ..sparse.solution import answered
from ..symbolic import Symbolic
from ..trace.results import mapped, parts_of, plain
from .leaves import Leaf

MATRIX, RIGHT = ".matrix", ".right"  # the names of a system's parts


@dataclass(frozen=True)
class System:
    """What a function has computed when it needs the solution of a system that is not given."""

    matrix: Any
    right: Any


class _Needed(BaseException):
    """Ends a run of the function where a solution is needed; not caught by code that catches `Exception`."""

    def __init__(self, system: System):
        self.system = system


class Until:
    """A function that is run until it needs the solution of another system than the first, which are given.

    Its arguments are so many solutions, and then those of the function. It returns the parts of the result by their
    names, or the matrix and the right-hand side of the next system.

    form : after a run, the result with names in the place of its parts;  needs : or whether it is such a system
    """

    def __init__(self, function: Callable, given: int):
        functools.update_wrapper(self, function)
        self._function, self._given = function, given
        self.form: Any = None
        self.needs = False

    def right(self, found: list[tuple[Leaf, Any]]) -> Any:
        """What the right-hand side of the system is, among its parts. It has rows."""
        return next(leaf for leaf, _ in found if leaf.name == RIGHT)

    def __call__(self, *arguments: Any) -> dict[str, Any]:
        solutions = iter(arguments[: self._given])
        graph = next((a.graph for a in arguments if isinstance(a, Symbolic | SparseMatrix)), None)

        def answer(matrix: SparseMatrix, right: Symbolic) -> Any:
            if matrix.graph is not graph:
                what = "derivatives of a function that solves a linear system are not distributed"
                raise UnsupportedError(what, "write the adjoint system as a function of its own")
            found = next(solutions, None)
            if found is None:
                raise _Needed(System(matrix, right))
            return found

        with answered(answer):
            try:
                result: Any = self._function(*arguments[self._given :])
                self.needs = False
            except _Needed as needed:
                result, self.needs = needed.system, True
        found, self.form = named(result)
        return found


def named(result: Any) -> tuple[dict[str, Any], Any]:
    """The parts of a result that have none themselves, by what Python writes after the result to have them; and the
    result with these names in their place."""
    found: dict[str, Any] = {}
    names = iter(_names(result, ""))

    def keep(part: Any) -> str:
        name = next(names)
        found[name] = part
        return name

    form = mapped(result, keep)
    return found, form


def _names(result: Any, name: str) -> list[str]:
    parts = parts_of(result := plain(result))
    if parts is None:
        return [name]
    is_record = not isinstance(result, dict | tuple | list)
    written = (f"{name}.{key}" if is_record else f"{name}[{key!r}]" for key in parts)
    return [one for inner, part in zip(written, parts.values(), strict=True) for one in _names(part, inner)]
