"""What is minimised: programs of the function and its derivatives, and linear systems of the numbers that are free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

import numpy as np

from ..derivatives import gradient, hessian
from ..options import Options
from ..pipeline import compile
from ..program import Program
from ..solvers import choose
from ..timing import Stopwatch
from .system import System


class Status(Protocol):
    """Where it is shown what is being done."""

    def update(self, text: str, /) -> Any: ...


class Problem:
    """A function of x and of parameters. Programs and systems are prepared when they are first needed.

    function : of x and all parameters, returns one number
    x, parameters : examples of these
    is_free : which numbers of x may change; `free` are their places in ``x.ravel()``
    project : how Hessians are made positive semidefinite, see `hessian`
    """

    def __init__(
        self,
        function: Callable,
        x: np.ndarray,
        parameters: Sequence[Any],
        is_free: np.ndarray,
        project: str | None,
        solver: str,
        options: Options | None,
    ):
        self.function, self.x, self.parameters, self.project = function, x, tuple(parameters), project
        self.free, self.solver, self.options = np.flatnonzero(is_free), solver, options
        self._projected_hessian = hessian(function, project=project)  # what this and the next line refuse is said now
        choose("factors", solver)
        self.clock = Stopwatch()
        self.status: Status | None = None
        self.values: tuple = ()  # of the parameters that vary
        self.derived: dict[Any, Program] = {}  # of `Sensitivity`
        self.turn = Lock()  # of the threads that use it

    def begin(self, values: Sequence[Any], status: Status | None = None) -> None:
        """Prepare for a search. values : of the parameters that vary"""
        self.values, self.status = tuple(values), status
        self.clock.seconds.clear()
        _ = self.energy, self.slope, self.projected

    def say(self, what: str) -> None:
        if self.status is not None:
            self.status.update(what)

    def at(self, program: Program, x: np.ndarray) -> Any:
        """What a program gives at x, with the present parameters."""
        return program(x, *self.values)

    @cached_property
    def energy(self) -> Program:
        return self.compiled("energy", self.function)

    @cached_property
    def slope(self) -> Program:
        return self.compiled("derivatives", gradient(self.function))

    @cached_property
    def projected(self) -> System:
        return self._system(self._projected_hessian)

    @cached_property
    def plain(self) -> System:
        """Of the Hessian as it is."""
        return self.projected if self.project is None else self._system(hessian(self.function))

    def compiled(self, name: str, function: Callable, *others: Any) -> Program:
        """A program of x, the parameters and other arguments, of which examples are given."""
        with self.clock.part("prepare"):
            watch = lambda stage, _: self.say(f"prepare {name}: {stage} done")  # noqa: E731
            return compile(function, self.x, *self.parameters, *others, options=self.options, watch=watch)

    def _system(self, derivatives: Callable) -> System:
        program = self.compiled("derivatives", derivatives)
        solver, _ = choose("factors", self.solver)
        with self.clock.part("prepare"):
            H = self.at(program, self.x)
            return System(H, self.free, solver, lambda x: self.at(program, x).data, self.clock)
