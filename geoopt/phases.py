"""Stage `phases`: what is computed before, between and after the solution of linear systems, and the loops that run as
often as values decide.

Takes: `Traced` without tapes, some of whose nodes may be solutions of systems, or states after loops.
Gives: `Phases`, programs without such nodes, each with the systems that are solved and the loops that are run after it.
Ensures: phases that do the same, as the steps of a loop do, are the same program; what a later phase needs of an
earlier one is stored where reading it is less than reading what it is computed from, and sums are.
"""

from __future__ import annotations

import numpy as np

from .graph import Node, Traced
from .graph.phased import Phase, Phases, Repeat, Solve
from .graph.rebuild import Part
from .graph.references import reachable
from .graph.values import Values
from .graph.while_loop import cut
from .integers.ids import Ids
from .stages import Context

_LEFT_TO_OTHERS = ("solution", "loop")  # what phases do not compute
_GIVEN = ("variable", *_LEFT_TO_OTHERS)
WORTH_STORING = 2  # times as many numbers as a value has, from which on it is stored rather than computed again ...
LONGEST = 32  # ... and operations one after the other


def phases(traced: Traced, context: Context) -> Phases:
    traced = cut(traced)
    live = reachable(traced)
    if not any(node.op in _LEFT_TO_OTHERS for node in live):
        return Phases.single(traced)
    return _Division(traced, live).divided()


class _Division:
    """Each node in the phase after the solutions that it depends on."""

    def __init__(self, traced: Traced, live: list[Node]):
        self.traced, self.graph, self.live = traced, traced.graph, live
        self.shapes: list[tuple[int, ...]] = []  # of arrays
        self._arrays: dict[tuple, int] = {}  # by the key of a view
        for node in traced.variables:
            self._array(node.ids)
        self.phase: dict[int, int] = {}  # by node
        self.varies: set[int] = set()  # nodes that depend on variables
        self.behind: dict[int, frozenset[int]] = {}  # by node, the variables that its phase computes it from ...
        self.outside: dict[int, frozenset[int]] = {}  # ... and what later phases have instead: stored nodes
        self._length: dict[int, int] = {}  # by node, the operations one after the other that its phase computes it by
        for node in live:
            self._place(node)

    # -- which phase, and what is stored ------------------------------------------------------------------

    def _place(self, node: Node) -> None:
        below = self.graph.below(node)
        latest = max((self.phase[n.index] for n in below), default=0)
        self.phase[node.index] = phase = latest + (node.op in _LEFT_TO_OTHERS)
        if node.op == "variable" or any(n.index in self.varies for n in below):
            self.varies.add(node.index)
        here = [n.index for n in below if self.phase[n.index] == phase]
        self._length[node.index] = 1 + max((self._length[i] for i in here), default=0)
        if node.op in _GIVEN:
            self.behind[node.index] = self.outside[node.index] = frozenset([node.index])
            return
        outside = frozenset().union(*(self.outside[n.index] for n in below))
        earlier = (self.outside[n.index] for n in below if self.phase[n.index] < phase)
        self.behind[node.index] = frozenset().union(*(self.behind[i] for i in here), *earlier)
        self.outside[node.index] = frozenset([node.index]) if self._is_source(node) else outside

    def _is_source(self, node: Node) -> bool:
        """Whether later phases have it as a variable."""
        if node.op in _GIVEN:
            return True
        if node.op == "constant" or node.gives_bool or node.index not in self.varies:
            return False
        size = sum(self.graph.nodes[i].size for i in self.behind[node.index])
        is_long = self._length[node.index] > LONGEST or node.op == "segment_sum"
        return is_long or size > WORTH_STORING * node.size

    # -- arrays -------------------------------------------------------------------------------------------

    def divided(self) -> Phases:
        count = 1 + max(self.phase.values())
        wanted: list[dict[int, Ids]] = [{} for _ in range(count)]  # by phase, the arrays that it computes
        solves: list[list[Solve]] = [[] for _ in range(count)]  # by phase, what is solved after it ...
        loops: list[list[Repeat]] = [[] for _ in range(count)]  # ... and which loops are run
        known: dict[int, np.ndarray] = {}
        values = Values(self.graph)
        for node in (n for n in self.live if n.op in _LEFT_TO_OTHERS):
            for view in node.operands:
                if any(n.index in self.varies for n in self.graph.nodes_of(view)):
                    self._want(view, wanted)
                elif self._array(view) not in known:
                    known[self._array(view)] = values.of(view)
            first, *others, found = map(self._array, (*node.operands, node.ids))
            before = self.phase[node.index] - 1
            if node.loop is not None:
                loops[before].append(Repeat(node.loop, first, tuple(others), found))
            else:
                solves[before].append(Solve(node.system, first, others[0], found))  # type: ignore[arg-type]
        outputs = tuple(self._want(view, wanted) for view in self.traced.outputs)
        # from the last on, so that what is stored for later phases is known
        parts = [self._computed(phase, wanted) for phase in reversed(range(count))][::-1]
        programs: dict[tuple, Traced] = {}  # of parts that do the same, one
        for traced, _ in parts:
            if traced.outputs:
                programs.setdefault(traced.key, traced)
        programs = programs or {parts[0][0].key: parts[0][0]}  # whose machine has memory for the solutions
        numbers = {key: number for number, key in enumerate(programs)}
        found = [
            Phase(numbers[traced.key] if computed else None, reads, tuple(computed), tuple(solved), tuple(run))
            for (traced, reads), computed, solved, run in zip(parts, wanted, solves, loops, strict=True)
        ]
        return Phases(tuple(programs.values()), tuple(found), tuple(self.shapes), outputs, known)

    def _array(self, view: Ids) -> int:
        """The number of the array that holds a view."""
        if view.key not in self._arrays:
            self._arrays[view.key] = len(self.shapes)
            self.shapes.append(view.shape)
        return self._arrays[view.key]

    def _want(self, view: Ids, wanted: list[dict[int, Ids]]) -> int:
        """Have an array computed, unless it is an argument or a solution as it is; gives its number."""
        array, nodes = self._array(view), self.graph.nodes_of(view)
        is_there = len(nodes) == 1 and nodes[0].op in _GIVEN and view.key == nodes[0].ids.key
        if not is_there:
            wanted[max((self.phase[n.index] for n in nodes), default=0)][array] = view
        return array

    def _computed(self, phase: int, wanted: list[dict[int, Ids]]) -> tuple[Traced, tuple[int, ...]]:
        """The program of a phase, and the arrays that its variables are."""
        views = list(wanted[phase].values())
        inside, sources = self._needed(phase, views)
        for node in sources:  # of earlier phases
            self._want(node.ids, wanted)
        part = Part(self.traced).part(inside, sources, views)
        return part, tuple(self._array(n.ids) for n in sources)

    def _needed(self, phase: int, views: list[Ids]) -> tuple[set[int], list[Node]]:
        """The nodes that are computed in a phase, and those that are its variables, in order."""
        inside: set[int] = set()
        sources: dict[int, Node] = {}
        pending = [node for view in views for node in self.graph.nodes_of(view)]
        while pending:
            node = pending.pop()
            if node.index in inside or node.index in sources:
                continue
            is_earlier = self.phase[node.index] < phase or node.op in _GIVEN
            if is_earlier and self._is_source(node):
                sources[node.index] = node
            else:
                inside.add(node.index)
                pending += self.graph.below(node)
        return inside, [sources[i] for i in sorted(sources)]
