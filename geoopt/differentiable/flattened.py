"""`Flattened`: functions as `compile` takes them, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError, UnsupportedError
from ..graph import Graph
from ..options import Options
from ..pipeline import compile
from ..program import Program
from ..results import Part
from ..sparse.matrix import SparseMatrix, constant
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..trace import Fixed, argument_names, in_form, variable
from ..trace.results import flatten, mapped
from . import Differentiable
from .naming import name_of, named


class Flattened(Differentiable):
    """A function of arguments of any kind, with a result of any form, as one of arrays to arrays.

    variables : the arguments that vary, as `compile` decides; all others are structure

    Matrices of the result come in rows; numbers and matrices of it that do not depend on the variables are among the
    arrays as well. Raises ArgumentError where no argument varies.
    """

    def __init__(self, function: Callable, arguments: tuple, keywords: dict[str, Any], options: Options | None):
        self._original, self._by_place = function, len(arguments)
        names = [*argument_names(function, arguments), *keywords]
        self._given = dict(zip(names, [*arguments, *keywords.values()], strict=True))
        found = [v for name, value in self._given.items() if (v := variable(name, value)) is not None]
        if not found:
            what = f"no argument of {name_of(function)} is a variable"
            raise ArgumentError(f"{what}: give positions and other numbers that vary as floats, not as integers")
        self.variables = tuple(argument for argument, _ in found)
        examples = [numbers for _, numbers in found]
        self._traced = named(self._result, function, name_of(function), [a.name for a in self.variables])
        super().__init__(named(self._arrays, function, name_of(function)), examples, (), options)

    def result(self, dtype: Any) -> Part:
        """How the arrays are put together; prepares the program."""
        return self._program(np.dtype(dtype)).signature.result

    def shapes_in(self, dtype: Any) -> tuple[tuple[int, ...], ...]:
        if not self.shapes:
            self.shapes = self._program(np.dtype(dtype)).machine.output_shapes
        return self.shapes

    def _compiled(self, dtype: np.dtype) -> Program:
        return compile(self._traced, *self.examples, dtype=dtype, options=self.options)

    def _result(self, *arrays: Any) -> Any:
        graph, given = arrays[0].graph, dict(self._given)
        for argument, array in zip(self.variables, arrays, strict=True):
            given[argument.name] = in_form(argument, given[argument.name], array)
        values = [value.value if isinstance(value, Fixed) else value for value in given.values()]
        named = dict(zip(list(given)[self._by_place :], values[self._by_place :], strict=True))
        result = self._original(*values[: self._by_place], **named)
        return mapped(result, lambda part: _as_output(graph, part))

    def _arrays(self, *arrays: Any) -> tuple:
        found: list[Any] = []
        flatten(self._result(*arrays), found)
        shapes = tuple(a.shape for a in found)
        if shapes != self.shapes:
            what = (
                f"the results have shapes {shapes} along one path of the function, {self.shapes} where all are joined"
            )
            raise UnsupportedError(what, "return arrays, and matrices of one pattern, along all paths")
        return tuple(found)


def _as_output(graph: Graph, part: Any) -> Any:
    """A number or an array of floats as a symbolic one, and a matrix in rows; anything else as it is."""
    if isinstance(part, Symbolic):
        return part
    if not isinstance(part, SparseMatrix) and sp.issparse(part) and part.dtype.kind == "f":
        part = constant(graph, part)
    if isinstance(part, SparseMatrix):
        return part.tocsr()
    is_float = isinstance(part, float | np.floating) or (isinstance(part, np.ndarray) and part.dtype.kind == "f")
    return as_symbolic(graph, np.asarray(part)) if is_float else part
