"""Long kernels in pieces: each evaluates several vectors of members before the next one does (loop fission).

A processor works on several vectors at a time only if it sees that far ahead. In long kernels whose operations wait for
each other, such as an iterative decomposition, it does not. Cut into pieces of some tens of operations it does,
and each piece has registers enough; what later ones need is on the stack. Short or wide kernels are left whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..ops import OPS
from ..plan.loops import ByCursor
from ..plan.planned import PlannedKernel
from ..template import Expression, bottom_up, operations
from .llvm_projection import ROUTINES

LONG = 200  # operations: more than processors look ahead
PER_CYCLE = 2  # operations started
LATENCY, LATENCIES = 4, {"divide": 13, "sqrt": 20}  # cycles until the result of an operation is there
WAITING = 1.5  # the least time of the longest chain of operations, beside that of starting all of them
SHORTEST, LONGEST = 30, 50  # operations of a piece
AT_ONCE = 8  # vectors that a piece evaluates
MOST_ROOMS = 64  # on the stack, and in the nearest cache

Kept = tuple[Expression, int]  # a value, and the number of its room on the stack


@dataclass(frozen=True)
class Piece:
    """Some expressions of a kernel, in the order in which they are evaluated.

    needed : what it needs of earlier pieces;  kept : what later ones need of it
    """

    expressions: list[Expression]
    needed: list[Kept]
    kept: list[Kept]


def pieces_of(kernel: PlannedKernel) -> list[Piece]:
    """The pieces of a kernel; none where it is left whole."""
    if kernel.added or kernel.sequences is not None or any(isinstance(loop, ByCursor) for loop in kernel.loops):
        return []  # these have rooms of their own, for one vector
    if operations(list(kernel.roots)) < LONG:
        return []
    cuts = _Cuts(kernel)
    pieces = cuts.pieces() if cuts.are_worth_it() else []
    return pieces if 0 < rooms_of(pieces) <= MOST_ROOMS else []


def rooms_of(pieces: list[Piece]) -> int:
    """How many rooms they need."""
    return max((room for piece in pieces for _, room in piece.kept), default=-1) + 1


class _Cuts:
    """Where a kernel is cut: where few values are needed later.

    order : what is evaluated once per member, arguments first, but for what is found anew wherever it is needed
    place : by identity, when each of those is evaluated;  last : when it is needed last, at the end what is written
    """

    def __init__(self, kernel: PlannedKernel):
        self.kernel, self.loops_of, self.joints = kernel, kernel.loops_of, kernel.joints
        terms = [e.args[0] for joint in self.joints for e in joint.sums]  # all that the sums of a loop need comes first
        below = bottom_up([*terms, *kernel.roots])
        self.order = [e for e in below if not self.loops_of[id(e)] and not self._is_repeated(e)]
        self.place = {id(e): at for at, e in enumerate(self.order)}
        for joint in self.joints:  # all its sums come with the first
            self.place |= dict.fromkeys(map(id, joint.sums), min((self.place[id(e)] for e in joint.sums), default=0))
        self.uses = self._uses()
        self.last = {e: max([self.place[e], *uses]) for e, uses in self.uses.items()}

    def _is_repeated(self, e: Expression) -> bool:
        """Whether it is found anew: what one instruction reads, and conditions."""
        if e.op == "leaf":
            address = self.kernel.reads[int(e.value)]  # type: ignore[arg-type]
            return address.is_uniform or address.is_sequential
        return e.op == "constant" or (e.op in OPS and OPS[e.op].gives_bool)

    def _uses(self) -> dict[int, list[int]]:
        """When each is needed: also through what is repeated, and what varies in loops."""
        uses: dict[int, list[int]] = {id(e): [] for e in self.order}

        def use(expressions: Sequence[Expression], place: int) -> None:
            between = bottom_up(list(expressions), lambda e: id(e) in uses)
            for e in (*expressions, *(a for b in between for a in b.args)):
                if id(e) in uses:
                    uses[id(e)].append(place)

        for e in self.order:
            use(e.args, self.place[id(e)])
        roots = self.kernel.roots
        use([roots[i] for i, loop in enumerate(self.kernel.root_loops) if loop is None], len(self.order))
        for joint in self.joints:
            use([roots[i] for i in joint.roots], self.place[id(joint.sums[0])] if joint.sums else 0)
        return uses

    def are_worth_it(self) -> bool:
        """Whether there are many operations, which wait for each other, and nothing but numbers goes to others."""
        if any(use < self.place[e] for e, uses in self.uses.items() for use in uses):
            return False  # a loop that only writes comes first, but needs what comes later
        ready: dict[int, int] = {}  # when the result of each operation is there
        operations = 0
        for e in bottom_up(list(self.kernel.roots)):
            if e.op in ROUTINES:
                return False
            is_operation = e.op not in ("constant", "leaf") and not self.loops_of[id(e)]
            operations += is_operation
            ready[id(e)] = max((ready[id(a)] for a in e.args), default=0)
            ready[id(e)] += LATENCIES.get(e.op, LATENCY) if is_operation else 0
        chain = max(ready[id(root)] for root in self.kernel.roots)
        return operations >= LONG and chain >= WAITING * operations / PER_CYCLE

    def pieces(self) -> list[Piece]:
        rooms: dict[int, int] = {}
        free: list[int] = []
        found = []
        for begin, end in pairwise([0, *self._places(), len(self.order) + 1]):
            mine = [e for e in self.order if begin <= self.place[id(e)] < end]
            older = [(e, rooms[id(e)]) for e in self.order if id(e) in rooms]
            needed = [(e, room) for e, room in older if any(begin <= use < end for use in self.uses[id(e)])]
            free += [room for e, room in needed if self.last[id(e)] < end]
            kept = [e for e in mine if self.last[id(e)] >= end]
            for e in kept:
                rooms[id(e)] = free.pop() if free else len(set(rooms.values()))
            found.append(Piece(mine, needed, [(e, rooms[id(e)]) for e in kept]))
        return found

    def _places(self) -> list[int]:
        """When pieces but the first begin."""
        needed = np.zeros(len(self.order) + 2, int)  # how many earlier values are, then or later
        for e in self.order:
            needed[self.place[id(e)] + 1] += 1
            needed[self.last[id(e)] + 1] -= 1
        needed = np.cumsum(needed)
        places, begin = [], 0
        while len(self.order) - begin > LONGEST:
            begin += SHORTEST + int(np.argmin(needed[begin + SHORTEST : begin + LONGEST]))
            places.append(begin)
        return places
