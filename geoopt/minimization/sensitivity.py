"""How a minimum moves with the parameters of the function, by the implicit function theorem.

At a minimum x(p) the slope E_x(x, p) is zero in what is free, for all p. So dx has H dx = −E_xp dp, with the Hessian H
of what is free. What is held moves as it is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..derivatives import gradient, jvp, vjp
from ..derivatives.calls import Wrt
from ..errors import ArgumentError, ShapeError
from ..program import Program
from ..trace import argument_names
from .problem import Problem


class Sensitivity:
    """Of one minimum.

    x : the minimum;  values : of the parameters that vary, there
    wrt : as for `vjp`, of the function's arguments; 0 is x, of which what is held counts
    """

    def __init__(self, problem: Problem, x: np.ndarray, values: tuple):
        self.problem, self.x, self.values = problem, x, values

    def vjp(self, cotangent: Any, wrt: Wrt) -> Any:
        places = self._places(wrt)
        w = self._like_x(cotangent, "the cotangent")
        with self.problem.turn:
            pulled = self._program("vjp", places, self._pulled, self.x)
            adjoint = self._solved(w)
            found = self._at(pulled, adjoint)
        slopes = tuple(self._of_held(w - s) if p == 0 else -s for p, s in zip(places, found, strict=True))
        return slopes if isinstance(wrt, tuple) else slopes[0]

    def jvp(self, tangent: Any, wrt: Wrt) -> np.ndarray:
        places = self._places(wrt)
        tangents = list(tangent) if isinstance(wrt, tuple) else [tangent]
        if len(tangents) != len(places):
            raise ArgumentError(f"jvp takes a tangent for each of {wrt!r}, not {len(tangents)}")
        moved = np.zeros(self.x.shape)
        if 0 in places:
            at = places.index(0)
            tangents[at] = moved = self._of_held(self._like_x(tangents[at], "the tangent"))
        with self.problem.turn:
            given = (self.x, *self.problem.parameters)
            pushed = self._program("jvp", places, self._pushed, *(given[p] for p in places))
            return moved - self._solved(self._at(pushed, *tangents))

    # -- programs -------------------------------------------------------------------------------------

    def _program(self, what: str, places: tuple[int, ...], make: Callable, *others: Any) -> Program:
        """others : examples of arguments beside those of the function"""
        made = self.problem.derived
        if (what, places) not in made:
            made[what, places] = self.problem.compiled("derivatives", make(places), *others)
        return made[what, places]

    def _pulled(self, places: tuple[int, ...]) -> Callable:
        return vjp(gradient(self.problem.function), places)

    def _pushed(self, places: tuple[int, ...]) -> Callable:
        pushed, count = jvp(gradient(self.problem.function), places), 1 + len(self.problem.parameters)
        return lambda *arrays: pushed(*arrays[:count], arrays[count:])

    def _at(self, program: Program, *others: Any) -> Any:
        return program(self.x, *self.values, *others)

    # -- arrays ---------------------------------------------------------------------------------------

    def _solved(self, right: np.ndarray) -> np.ndarray:
        """The solution of Newton's system at the minimum, with zeros for what is held. right : like x"""
        free, found = self.problem.free, np.zeros(self.x.shape)
        if len(free):
            self.problem.values = self.values
            found.flat[free] = self.problem.plain.solved_at(self.x, right.ravel()[free])
        return found

    def _of_held(self, array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array.flat[self.problem.free] = 0.0
        return array

    def _like_x(self, given: Any, what: str) -> np.ndarray:
        array = np.asarray(given, float)
        if array.shape != self.x.shape:
            raise ShapeError(f"{what} has shape {array.shape}, the minimum {self.x.shape}", "give a number for each")
        return array

    def _places(self, wrt: Wrt) -> tuple[int, ...]:
        """The arguments as positions."""
        names = argument_names(self.problem.function, (self.x, *self.problem.parameters))
        found = []
        for one in wrt if isinstance(wrt, tuple) else (wrt,):
            place = names.index(one) if one in names else one
            if not isinstance(place, int) or not 0 <= place < len(names):
                known = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
                raise ArgumentError(f"wrt={one!r} is no argument of the function; choose from {known}")
            found.append(place)
        return tuple(found)
