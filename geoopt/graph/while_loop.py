"""Loops that run as often as values decide.

Traced code has one as the node "while", whose operands are the state as the turns of the loop have it (a variable of
its own), the state before the loop, that after a turn, and whether there is a turn. `cut` makes a node "loop" of it,
whose turns are a program of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import Graph, Node, Traced
from .loop_nodes import loop_node
from .rebuild import Part, Rebuild
from .references import reachable
from .values import Values, states


@dataclass(frozen=True, eq=False)
class WhileLoop:
    """turn : the program of one turn, of the state (k,) and of what else the turn reads; it gives the state after the
    turn (k,), and whether there is that turn, 1 or 0, (1,)"""

    turn: Traced

    @cached_property
    def key(self) -> tuple:
        return self.turn.key

    @property
    def test(self) -> Traced:
        """The program of whether there is a turn."""
        return Traced(self.turn.graph, self.turn.variables, self.turn.outputs[1:])

    def after(self, begin: np.ndarray, given: list[np.ndarray]) -> np.ndarray:
        """The state after the loop. begin : that before it;  given : what else the turns read"""

        def turn(state: np.ndarray) -> tuple[np.ndarray, bool]:
            inputs = zip(self.turn.variables, (state, *given), strict=True)
            values = Values(self.turn.graph, {node.index: np.ravel(x) for node, x in inputs})
            end, goes_on = self.turn.outputs
            is_on = bool(values.of(goes_on))
            return (values.of(end) if is_on else state), is_on

        return states(begin, turn)


def cut(traced: Traced) -> Traced:
    """The program with a node "loop" in the place of each node "while" that is not inside of another's turns."""
    live = reachable(traced)
    loops = [node for node in live if node.op == "while"]
    if not loops:
        return traced
    inside: dict[int, set[int]] = {}  # by loop, the nodes of its turns
    for node in loops:
        own = _dependent(traced.graph, live, state_of(traced.graph, node))
        inside[node.index] = own.union(*(inside[i] for i in own & inside.keys()))
    of_turns = set().union(*inside.values())
    rebuild = _Cut(traced, {node.index: inside[node.index] for node in loops if node.index not in of_turns})
    return rebuild.rebuilt([node for node in live if node.index not in of_turns])


def state_of(graph: Graph, node: Node) -> Node:
    """The variable that is the state in the turns of a node "while"."""
    return graph.nodes_of(node.operands[0])[0]


def _dependent(graph: Graph, live: list[Node], state: Node) -> set[int]:
    """The nodes that depend on the state, but for the loop itself."""
    found = {state.index}
    for node in live:
        reads = graph.below(node)
        if node.op == "while" and state in reads:
            reads = [n for view in node.operands[1:2] for n in graph.nodes_of(view)]
        if any(n.index in found for n in reads):
            found.add(node.index)
    return found


class _Cut(Rebuild):
    """inside : by the loops that are cut out, the nodes of their turns"""

    def __init__(self, traced: Traced, inside: dict[int, set[int]]):
        super().__init__(traced)
        self._inside = inside

    def copy(self, node: Node) -> None:
        if node.index not in self._inside:
            super().copy(node)
            return
        _, begin, end, goes_on = node.operands
        turns = self._inside[node.index]
        own: set[int] = set()
        needed: set[int] = set()
        pending = [n for view in (end, goes_on) for n in self.old.nodes_of(view)]
        while pending:
            read = pending.pop()
            if read.index not in needed:
                needed.add(read.index)
                # comparisons have no place in memory
                if read.index in turns or read.gives_bool or read.op == "constant":
                    own.add(read.index)
                    pending += self.old.below(read)
        of_turns = state_of(self.old, node)
        given = [self.old.nodes[i] for i in sorted(needed - own)]
        turn = Part(self.before).part(own - {of_turns.index}, [of_turns, *given], [end, goes_on])
        operands = (self.moved(begin), *(self.moved(n.ids) for n in given))
        self.keep(node, loop_node(self.graph, WhileLoop(turn), operands))
