"""`Share`: what a rank computes of a result, by a program of its piece of the mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..options import Options
from ..pipeline import compile
from ..program import Program
from ..results import Known, OfDict
from .fields import Piece
from .halo import Halo
from .inputs import Input
from .laws import ADDED, DIFFERENCES, OWNED, Way
from .leaves import Leaf
from .replay import Until

Found = list[tuple[Leaf, Way]]


@dataclass(eq=False)
class Share:
    """Some parts of the result on a piece, in one of the ways of `laws`, which count with a sign."""

    piece: Piece
    kind: str
    sign: int
    leaves: list[Leaf]
    program: Program | None = None

    def prepare(self, function: Callable, arguments: list, options: Options | None) -> None:
        self.program = compile(function, *arguments, options=options)

    def values(self, inputs: list[Input]) -> dict[str, Any]:
        assert self.program is not None
        return self.program(*(given.on(self.piece) for given in inputs))

    @property
    def varying(self) -> set[str]:
        """The names of parts that depend on the variables."""
        assert self.program is not None
        result = self.program.signature.result
        assert isinstance(result, OfDict)
        return {name for name, part in zip(result.keys, result.parts, strict=True) if not isinstance(part, Known)}


def pieces(halo: Halo, found: Found) -> Iterator[tuple[str, Piece, int, list[Leaf]]]:
    """The pieces of the mesh that this rank evaluates a function on: by which way, with which sign, for which parts."""
    for kind in (ADDED, OWNED, DIFFERENCES):
        leaves = [leaf for leaf, way in found if way.kind == kind]
        rings = max((way.rings for _, way in found if way.kind == kind), default=0)
        if kind == OWNED:
            leaves = [leaf for leaf in leaves if leaf.rows and halo.own_at(leaf.rows.at)]
        if not leaves:
            continue
        if kind != DIFFERENCES:
            both = [(1, halo.piece(rings))]
        else:
            both = list(zip((1, -1), halo.pieces_of_differences(rings), strict=True))
        yield from ((kind, piece, sign, leaves) for sign, piece in both if len(piece.places))


def restricted(function: Until, share: Share, halo: Halo) -> Callable:
    """The function with those parts of the result that are wanted; of what the rank owns, its own rows."""

    @functools.wraps(function)
    def run(*arguments: Any) -> dict[str, Any]:
        found = function(*arguments)
        return {leaf.name: of(leaf, found[leaf.name]) for leaf in share.leaves}

    def of(leaf: Leaf, value: Any) -> Any:
        if share.kind == OWNED:
            assert leaf.rows is not None
            return leaf.first_rows(value, halo.own_at(leaf.rows.at), share.piece)
        return value if leaf.columns is None else value.tocsr()

    return run
