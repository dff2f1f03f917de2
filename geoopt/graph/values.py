"""What nodes mean on floats, and the values of some scalars of a graph that is still growing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..block_ops import BLOCK_OPS
from ..integers.ids import Ids
from ..ops import OPS
from . import Graph, Node
from .tape import NAMES, NONE

MOST_KEPT = 1 << 20  # scalars of a node whose values are kept for those who ask next


def applied(node: Node, operands: list[np.ndarray]) -> np.ndarray:
    """The values of a node from those of its operands, comparisons among them as booleans."""
    if node.op == "segment_sum":
        return np.bincount(node.segments.of_entries, operands[0], node.size)
    if node.op == "join":
        return operands[0]
    if node.op == "solution":
        return node.system.solved(*operands)  # type: ignore[union-attr]
    if node.op == "loop":
        return node.loop.after(operands[0], operands[1:])  # type: ignore[union-attr]
    if node.op in BLOCK_OPS:
        return BLOCK_OPS[node.op](np.stack(operands, axis=1))
    with np.errstate(all="ignore"):
        return OPS[node.op].numpy(*operands)


def applied_on_tape(name: str, operands: Sequence[Any]) -> float:
    """The value of a scalar made by an operation of a tape."""
    takes_bool = [OPS[name].takes_bool and (name != "where" or slot == 0) for slot in range(3)]
    with np.errstate(all="ignore"):
        return float(OPS[name].numpy(*(v != 0 if t else v for v, t in zip(operands, takes_bool, strict=False))))


def states(begin: np.ndarray, turn: Callable[[np.ndarray], tuple[np.ndarray, bool]]) -> np.ndarray:
    """The state after a loop. turn : gives of a state that after a turn, and whether there is that turn"""
    state = begin
    while True:
        after, goes_on = turn(state)
        if not goes_on:
            return state
        state = after


def truth(graph: Graph, view: Ids, values: np.ndarray) -> np.ndarray:
    """Comparisons are kept as 0 and 1 among floats."""
    nodes = graph.nodes_of(view)
    return values != 0 if nodes and nodes[0].gives_bool else values


def gathered(graph: Graph, view: Ids, values: Callable[[Node, np.ndarray], np.ndarray]) -> np.ndarray:
    """The values of a view, from those at some places of the nodes that it reads."""
    nodes, ids = graph.nodes_of(view), view.to_array()
    out = np.empty(ids.shape)
    for node in nodes:
        inside = (ids >= node.first) & (ids < node.end) if len(nodes) > 1 else ...
        out[inside] = values(node, ids[inside] - node.first)
    return out


@dataclass(eq=False)
class Values:
    """Values of scalars, evaluated when they are asked for; only what they depend on is.

    variables : per node that is a variable, its values, or the scalars of the graph that it stands for
    """

    graph: Graph
    variables: dict[int, np.ndarray | Ids] = field(default_factory=dict)
    _kept: dict[int, np.ndarray] = field(default_factory=dict)  # by node, those of few scalars
    _numbers: dict[int, float] = field(default_factory=dict)  # by id, of those on tapes

    def of(self, view: Ids) -> np.ndarray:
        """One value per entry of a view; 0 and 1 for comparisons."""
        if view.size == 1:
            return np.full(view.shape, self._number(int(view.lowest)))
        self._evaluate(self.graph.nodes_of(view))
        values = self._gathered(view)
        self._kept = {i: v for i, v in self._kept.items() if len(v) <= MOST_KEPT}
        return values

    def _evaluate(self, nodes: list[Node]) -> None:
        for node in self._missing(nodes):
            self._kept[node.index] = np.asarray(self._evaluated_node(node), np.float64).ravel()

    def _missing(self, nodes: list[Node]) -> list[Node]:
        """What has to be evaluated before some nodes, in order, and they themselves."""
        found: dict[int, Node] = {}
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node.index in found or node.index in self._kept or node.tape is not None:
                continue
            found[node.index] = node
            given = self.variables[node.index] if node.op == "variable" else None
            reads = (given,) if isinstance(given, Ids) else node.operands
            if node.op == "while":
                reads = node.operands[1:2]
            pending += [n for view in reads for n in self.graph.nodes_of(view)]
        return [found[i] for i in sorted(found)]

    def _evaluated_node(self, node: Node) -> np.ndarray:
        if node.op == "constant":
            return node.values
        if node.op == "variable":
            given = self.variables[node.index]
            return self._gathered(given) if isinstance(given, Ids) else given
        if node.op == "while":
            return self._after_loop(node)
        return applied(node, [truth(self.graph, o, self._gathered(o)) for o in node.operands])

    def _after_loop(self, node: Node) -> np.ndarray:
        """The state after a loop; of its turns nothing is kept."""
        state, begin, end, goes_on = node.operands
        [of_turns] = self.graph.nodes_of(state)

        def turn(values: np.ndarray) -> tuple[np.ndarray, bool]:
            inside = Values(self.graph, {**self.variables, of_turns.index: values})
            is_on = bool(inside.of(goes_on))
            return (inside.of(end) if is_on else values), is_on

        return states(self._gathered(begin), turn)

    def _gathered(self, view: Ids) -> np.ndarray:
        """Values of scalars on tapes, or of nodes that have been evaluated."""
        return gathered(self.graph, view, self._places)

    def _places(self, node: Node, places: np.ndarray) -> np.ndarray:
        if node.tape is None:
            return self._kept[node.index][places]
        numbers, which = np.unique(places, return_inverse=True)  # a number may be that of a whole array
        return np.array([self._number(node.first + i) for i in numbers.tolist()])[which].reshape(places.shape)

    def _number(self, scalar: int) -> float:
        """The value of one scalar; chains of numbers may be long, so that nothing recurs along them."""
        pending = [scalar]
        while pending:
            i = pending[-1]
            name, operands = self._on_tape(i)
            missing = [k for k in operands if k not in self._numbers] if name not in ("constant", "") else []
            if missing:
                pending += missing
                continue
            if i not in self._numbers:
                self._numbers[i] = self._evaluated(i, name, operands)
            pending.pop()
        return self._numbers[scalar]

    def _on_tape(self, scalar: int) -> tuple[str, list[int]]:
        """The operation that made a scalar, and what it reads; no name for scalars of other nodes."""
        tape, place = self.graph.on_tape(scalar)
        if tape is None:
            return "", []
        code, operands = tape.entry(place)
        return NAMES[code], [k for k in operands if k != NONE]

    def _evaluated(self, scalar: int, name: str, operands: list[int]) -> float:
        if name == "constant":
            return self.graph.on_tape(scalar)[0].values[operands[0]]  # type: ignore[union-attr]
        if name:
            return applied_on_tape(name, [self._numbers[k] for k in operands])
        node = self.graph.node_of(scalar)
        self._evaluate([node])
        return float(self._kept[node.index][scalar - node.first])
