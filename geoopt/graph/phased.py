"""`Phases`: a program as programs without linear systems, and the systems that are solved between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import Traced
from .system import System


@dataclass(frozen=True, eq=False)
class Solve:
    """The solution of one system. values, right, solution : the arrays of `Phases` that these are"""

    system: System
    values: int
    right: int
    solution: int


@dataclass(frozen=True, eq=False)
class Phase:
    """What is computed without solving, and the systems that are solved then.

    program : which of `Phases.programs` computes it; None where there is nothing to compute
    reads, writes : of its variables and of its outputs, which arrays of `Phases` they are
    """

    program: int | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    solves: tuple[Solve, ...] = ()


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

    def check(self) -> None:
        for traced in self.programs:
            traced.check()

    def __str__(self) -> str:
        if not self.solves:
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
        return "\n\n".join([*programs, "\n".join([*steps, f"results: arrays {_listed(self.outputs)}"])])


def _listed(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers)) or "none"
