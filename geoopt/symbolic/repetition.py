"""Whether traced code loops in Python over mesh elements: then most of its nodes have the structure of others.

Straight code on few elements makes many short nodes too, but hardly two of one structure.
"""

from __future__ import annotations

from ..graph import Graph
from ..integers.ids import Ids

MANY_NODES = 1000  # with fewer, looping or not makes no difference
ALIKE = 4  # a loop has at least so many nodes of each structure
MOST_TERMS = 32  # a sum of more kinds of terms is a structure of its own


def is_loop(graph: Graph) -> bool:
    """Whether the code that has made a graph so far loops.

    The newest half of the nodes tells, and is looked at when their number has doubled.
    """
    count = len(graph.nodes)
    if count > MANY_NODES and count > graph.next_look:
        newest = structures(graph)[graph.next_look // 2 :]
        graph.is_loop, graph.next_look = ALIKE * len(set(newest)) <= len(newest), 2 * count
    return graph.is_loop


def structures(graph: Graph) -> list[int]:
    """A hash of the structure of each node. A sum counts as the set of its kinds of terms, so that every step of a loop
    that adds to it makes the same."""
    found: list[int] = []
    sums: dict[int, frozenset[int]] = {}

    def of_view(view: Ids) -> int:
        if not view.size:
            return 0
        low = graph.node_of(view.lowest).index
        high = min(graph.node_of(view.highest).index, len(found) - 1)  # bounds need not be reached
        return found[low] if low == high else hash((found[low], found[high]))

    def terms_of(view: Ids) -> frozenset[int]:
        kind = of_view(view)
        return sums.get(kind, frozenset((kind,)))

    for node in graph.nodes:
        if node.op in ("add", "subtract"):
            terms = terms_of(node.operands[0]) | terms_of(node.operands[1])
            terms = terms if len(terms) <= MOST_TERMS else frozenset((node.first,))
            found.append(hash(terms))
            sums[found[-1]] = terms
        else:
            found.append(hash((node.op, node.name, *(of_view(o) for o in node.operands))))
    return found
