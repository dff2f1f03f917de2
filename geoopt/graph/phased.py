"""`Phases`: a program as programs without linear systems, and the systems that are solved between them, and the loops
that are run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import Traced
from .system import System
from .while_loop import WhileLoop


@dataclass(frozen=True, eq=False)
class Solve:
    """The solution of one system. values, right, solution : the arrays of `Phases` that these are"""

    system: System
    values: int
    right: int
    solution: int


@dataclass(frozen=True, eq=False)
class Repeat:
    """A loop that runs as often as values decide. begin, given, end : the arrays of `Phases` that its state is before
    it, that its turns read besides, and that its state is after it"""

    loop: WhileLoop
    begin: int
    given: tuple[int, ...]
    end: int


@dataclass(frozen=True, eq=False)
class Phase:
    """What is computed without solving, and the systems that are solved and the loops that are run then.

    program : which of `Phases.programs` computes it; None where there is nothing to compute
    reads, writes : of its variables and of its outputs, which arrays of `Phases` they are
    """

    program: int | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    solves: tuple[Solve, ...] = ()
    loops: tuple[Repeat, ...] = ()

    @property
    def is_followed(self) -> bool:
        """Whether systems are solved, or loops run, before the next phase."""
        return bool(self.solves or self.loops)


@dataclass(frozen=True, eq=False)
class Phases:
    """Programs one after the other, which pass arrays on: first the variables of the whole, then what is computed.

    programs : that are different
    shapes : of each array;  outputs : the arrays that the results are
    known : by array, the numbers of matrices and right-hand sides that do not depend on the variables
    """

    programs: tuple[Traced, ...]
    phases: tuple[Phase, ...]
    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    known: dict[int, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def single(traced: Traced) -> Phases:
        """A program that solves nothing."""
        variables, outputs = len(traced.variables), len(traced.outputs)
        shapes = (*(v.shape for v in traced.variables), *(view.shape for view in traced.outputs))
        places = tuple(range(variables, variables + outputs))
        return Phases((traced,), (Phase(0, tuple(range(variables)), places),), shapes, places)

    @property
    def solves(self) -> list[Solve]:
        return [solve for phase in self.phases for solve in phase.solves]

    @property
    def loops(self) -> list[Repeat]:
        return [loop for phase in self.phases for loop in phase.loops]

    @property
    def is_single(self) -> bool:
        """Whether it is one program, of which nothing is left to others."""
        return not (self.solves or self.loops)

    def check(self) -> None:
        for traced in self.programs:
            traced.check()

    def __str__(self) -> str:
        if self.is_single:
            return str(self.programs[0])
        programs = [f"program {number}\n{traced}" for number, traced in enumerate(self.programs)]
        steps = []
        for phase in self.phases:
            if phase.program is not None:
                steps.append(f"program {phase.program}: arrays {_listed(phase.reads)} -> {_listed(phase.writes)}")
            for s in phase.solves:
                matrix = f"matrix {s.values}{' transposed' if s.system.is_transposed else ''}"
                what = f"{matrix}, right-hand side {s.right}, {s.system.pattern.shape[0]} unknowns"
                steps.append(f"solve: {what} -> {s.solution}")
            for r in phase.loops:
                turn = "\n".join(f"  {line}" for line in str(r.loop.turn).splitlines())
                steps.append(f"loop: state {r.begin}, arrays {_listed(r.given)} -> {r.end}, by turns of\n{turn}")
        return "\n\n".join([*programs, "\n".join([*steps, f"results: arrays {_listed(self.outputs)}"])])


def _listed(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers)) or "none"
