"""`Steps`: a step and its derivatives as programs, and the factors that both use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..derivatives import vjp
from ..errors import ArgumentError, ShapeError
from ..options import Options
from ..pipeline import compile
from ..program import Program
from ..solvers.linear import Factor, LinearSolver
from ..solvers.phased import PhasedMachine, share_solvers
from ..trace import argument_names, variable

State = tuple[Any, ...]  # arrays of a state


class Steps:
    """A step from a state to the next.

    step : of the arrays of a state and of the parameters;  state, parameters : examples
    """

    def __init__(self, step: Callable, state: Any, parameters: Sequence[Any], dtype: np.dtype, options: Options | None):
        self.step, self.is_tuple, self.options = step, isinstance(state, tuple), options
        given = *(state if self.is_tuple else (state,)), *parameters
        self._count = len(given) - len(parameters)
        found = [variable(name, value) for name, value in zip(argument_names(step, given), given, strict=True)]
        for place, own in enumerate(found[: self._count]):
            if own is None or own[0].pattern is not None:
                what = f"array {place} of the state is {type(given[place]).__name__}"
                raise ArgumentError(f"{what}; give an array of floats, or a tuple of them")
        self._given, self._places = given, tuple(i for i, own in enumerate(found) if own is not None)
        self.shapes = [own[0].shape for own in found[: self._count] if own is not None]
        self.variables = [own[0] for own in found[self._count :] if own is not None]  # of the parameters
        self.forward = compile(step, *given, dtype=dtype, options=options)

    @property
    def name(self) -> str:
        return self.forward.signature.function

    # -- states ---------------------------------------------------------------------------------------

    def parts(self, state: Any) -> State:
        """The arrays of a state, or what belongs to each of them."""
        parts = tuple(state) if self.is_tuple and isinstance(state, tuple | list) else (state,)
        if len(parts) != self._count:
            raise ShapeError(f"a state has {self._count} arrays, not {len(parts)}", "give them as a tuple")
        return parts

    def state(self, given: Any) -> State:
        """The arrays of a state, in the type of the programs."""
        found = tuple(np.array(part, self.forward.dtype) for part in self.parts(given))
        for place, (part, shape) in enumerate(zip(found, self.shapes, strict=True)):
            if part.shape != shape:
                what = f"array {place} of the state has shape {part.shape}, not {shape}"
                raise ShapeError(what, "make another Chain")
        return found

    def in_form(self, parts: State) -> Any:
        """Arrays as a state has them."""
        return parts if self.is_tuple else parts[0]

    def zeros(self) -> State:
        return tuple(np.zeros(shape, self.forward.dtype) for shape in self.shapes)

    # -- steps ----------------------------------------------------------------------------------------

    def advanced(self, state: State, values: Sequence[Any]) -> State:
        """The next state. values : of the parameters that vary"""
        found = self.parts(self.forward(*state, *values))
        if [np.shape(part) for part in found] != self.shapes:
            shapes = ", ".join(str(np.shape(part)) for part in found)
            wanted = ", ".join(map(str, self.shapes))
            raise ShapeError(f"the step returns arrays of shapes {shapes}", f"return a state: {wanted}")
        return found

    def slopes(self, state: State, values: Sequence[Any], cotangent: State) -> tuple[State, list[Any]]:
        """By the state and by each parameter that varies, from those by the next state."""
        found = self._backward(*state, *values, *cotangent)
        return found[: self._count], list(found[self._count :])

    @cached_property
    def _backward(self) -> Program:
        count = len(self._given)

        def backward(*arrays: Any) -> tuple:
            return vjp(self.step, self._places)(*arrays[:count], self.in_form(arrays[count:]))

        ones = [np.ones(shape) for shape in self.shapes]
        made = compile(backward, *self._given, *ones, dtype=self.forward.dtype, options=self.options)
        share_solvers(made.machine, self.forward.machine)
        return made

    # -- factors --------------------------------------------------------------------------------------

    @cached_property
    def _solvers(self) -> list[LinearSolver]:
        machine = self.forward.machine
        return machine.varying_solvers if isinstance(machine, PhasedMachine) else []

    @property
    def factor_bytes(self) -> int:
        """Of those of the step that was made last, with the values of the matrices; 0 where it solves nothing."""
        return sum(solver.held_bytes for solver in self._solvers)

    def release_factors(self) -> list[Factor]:
        """Of the systems of the step that was made last."""
        return [solver.release() for solver in self._solvers]

    def use_factors(self, factors: list[Factor]) -> None:
        """For the derivatives of the step that they are of, which are computed next."""
        epsilon = float(np.finfo(self.forward.dtype).eps)
        for solver, factor in zip(self._solvers, factors, strict=True):
            solver.use(factor, epsilon)
