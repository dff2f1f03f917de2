"""Functions traced inside a graph as programs of their own, and the way back into that graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..graph import Graph, Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import reachable
from ..integers.ids import Ids
from ..lift import lifted
from ..symbolic import Symbolic, symbolic
from ..symbolic.arithmetic import as_symbolic


@dataclass(frozen=True, eq=False)
class Inner:
    """A function traced on stand-ins for some arguments.

    traced : its program, without tapes; outputs: its result
    arguments : the variables that stand in
    outer : the graph around it;  places : the ids there of every variable, contiguous and of one node
    """

    traced: Traced
    arguments: tuple[Node, ...]
    outer: Graph
    places: tuple[Ids, ...]

    @property
    def graph(self) -> Graph:
        return self.traced.graph

    def inlined(self, arrays: list[Symbolic]) -> list[Symbolic]:
        """Arrays of the inner graph as arrays of the outer one, the arguments in their places."""
        self.graph.finish()
        traced = lifted(replace(self.traced, outputs=tuple(a.ids for a in arrays)))
        copied = _Copied(traced, self.outer)
        for node, place in zip(traced.variables, self.places, strict=True):
            copied.nodes[node.index] = self.outer.node_of(place.offset)
            copied.shift[node.index] = place.offset - node.first
        return [symbolic(self.outer, ids) for ids in copied.traced().outputs]


def traced_inside(outer: Graph, arguments: list[Symbolic], function: Callable[[list[Symbolic]], object]) -> Inner:
    """Trace a function of arrays of a graph that returns one array (or a known number).

    What it reads of the graph beside its arguments is fixed.
    """
    places = [_contiguous(a) for a in arguments]
    outer.finish()
    start, blocks = len(outer.nodes), len(outer.blocks)
    stand_ins = [outer.variable(f"inner {i}", a.shape) for i, a in enumerate(arguments)]
    outer.given |= {node.index: place for node, place in zip(stand_ins, places, strict=True)}
    asked = len(outer.path.conditions)
    result = as_symbolic(outer, function([symbolic(outer, n.ids) for n in stand_ins]))
    conditions: list = [np.where(c, 1.0, 0.0) for c in outer.path.conditions[asked:]]
    outer.finish()
    nodes = [_as_variable(n) if n.index < start else n for n in outer.nodes]
    around = [n for n in nodes if n.op == "variable" and n.index < start]
    variables, places = (*stand_ins, *around), [*places, *(n.ids for n in around)]
    graph = Graph(nodes, outer.firsts[:], outer.size, outer.blocks[blocks:])
    del outer.blocks[blocks:]
    if conditions:  # of branches in the function: they choose between results of the code around it
        inner = Inner(Traced(graph, variables, ()), tuple(stand_ins), outer, tuple(places))
        outer.path.conditions[asked:] = [c != 0 for c in inner.inlined(conditions)]
    traced = lifted(Traced(graph, variables, (result.ids,)))
    live = {n.index for n in reachable(traced)} | {n.index for n in traced.variables[: len(arguments)]}
    pairs = zip(traced.variables, places, strict=True)
    kept, of_kept = zip(*(p for p in pairs if p[0].index in live), strict=True)
    traced = _Copied(replace(traced, variables=kept), Graph()).traced()
    return Inner(traced, traced.variables[: len(arguments)], outer, of_kept)


def _contiguous(array: Symbolic) -> Ids:
    """The ids of an array, or of a copy of it, that are one after another in one node."""
    is_within_one = array.ids.is_contiguous() and len(array.graph.nodes_of(array.ids)) == 1
    return array.ids if is_within_one else array.graph.join(array.ids).ids


def _as_variable(node: Node) -> Node:
    """What is computed outside is a variable inside, but for conditions, which are no numbers."""
    if node.is_leaf or node.tape is not None or node.gives_bool:
        return node
    return Node(node.index, "variable", (), node.shape, node.first, name=f"n{node.index}")


class _Copied(Rebuild):
    """What the outputs need, copied into a graph."""

    def __init__(self, traced: Traced, graph: Graph):
        super().__init__(traced)
        self.graph = graph

    def traced(self) -> Traced:
        needed = {n.index for n in reachable(self.before)} | {n.index for n in self.before.variables}
        for node in self.old.nodes:
            if node.index in needed and node.index not in self.nodes:
                self.copy(node)
        return self.result()
