"""`Stage`: what a program computes before it solves a linear system, or after the last one: how, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..derivatives.calls import run
from ..options import Options
from .fields import Field, Piece, on
from .halo import Halo
from .inputs import Input, OfSolution, in_rows
from .laws import ways
from .outputs import Output, output
from .patch import Patch
from .ranks import give_back, together
from .replay import Until
from .shares import Found, Share, pieces, restricted


@dataclass(eq=False)
class Stage:
    """function : computes its parts, of the solutions so far and of the arguments;  found : how these are shared

    constants : the parts that do not vary, by their names
    """

    function: Until
    found: Found
    shares: list[Share]
    outputs: dict[str, Output]
    constants: dict[str, Any]

    def run(self, inputs: list[Input]) -> dict[str, Any]:
        """The parts that vary, by their names. All ranks call."""
        values: dict[str, Any] = {}
        for share in self.shares:
            for name, value in share.values(inputs).items():
                signed = value if share.sign > 0 else -value
                values[name] = values[name] + signed if name in values else signed
        return {name: out.put(values.get(name)) for name, out in self.outputs.items()}


def tried(function: Callable, patch: Patch, arguments: tuple, rings: int, label: str) -> Iterator[tuple[Until, Found]]:
    """The function until each system that it solves, and until its end, with how its parts are to be shared."""
    patch = replace(patch, _values={})  # which are those of this function's arguments
    solutions: list[tuple[Field, Any]] = []
    # what varies is not what a record was made of, even where both are one field now
    arguments = tuple(replace(a) if isinstance(a, Field) and a.varies else a for a in arguments)
    while True:
        until = Until(function, len(solutions))

        def evaluate(piece: Piece, until: Until = until) -> dict[str, Any]:
            given = [in_rows(on(piece, field, patch), rows) for field, rows in solutions]
            return run(until, (*given, *(on(piece, a, patch) for a in arguments)), {})

        found = ways(patch, evaluate, rings, label)
        yield until, found
        if not until.needs:
            return
        right = until.right(found)
        solutions.append((patch.invented(right.rows.at, right.rows.each, right.shape), right.rows))


@dataclass(eq=False)
class Known:
    """Values of fields at all that a rank knows of the mesh."""

    found: dict[Field, np.ndarray]

    def values(self, given: Field, /) -> np.ndarray:
        return self.found[given]


@dataclass(eq=False)
class Workshop:
    """Where stages are prepared, for the arguments that the function is compiled with."""

    halo: Halo
    arguments: tuple
    known: Known
    options: Options | None

    def stage(self, until: Until, found: Found, inputs: list[Input]) -> Stage:
        """inputs : the solutions so far, and the arguments that vary"""
        examples: dict[str, tuple[Piece, Any]] = {}
        with together(self.halo.comm):
            shares = [
                self._share(Share(piece, kind, sign, leaves), until, inputs)
                for kind, piece, sign, leaves in pieces(self.halo, found)
            ]
            give_back()  # what preparing has taken, before PETSc takes as much
            for share in shares:
                examples |= {name: (share.piece, value) for name, value in share.values(inputs).items()}
        nothing = self.halo.piece(0), None
        outputs = {leaf.name: output(self.halo, leaf, way, *examples.get(leaf.name, nothing)) for leaf, way in found}
        varying = set().union(*self.halo.comm.allgather({name for share in shares for name in share.varying}))
        constants = {
            name: out.put(examples.get(name, nothing)[1]) for name, out in outputs.items() if name not in varying
        }
        return Stage(until, found, shares, {n: out for n, out in outputs.items() if n in varying}, constants)

    def _share(self, share: Share, until: Until, inputs: list[Input]) -> Share:
        solutions = [given.on(share.piece) for given in inputs if isinstance(given, OfSolution)]
        given = [*solutions, *(on(share.piece, a, self.known) for a in self.arguments)]
        share.prepare(restricted(until, share, self.halo), given, self.options)
        return share
