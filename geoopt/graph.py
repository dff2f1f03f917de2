"""The expression graph: long nodes, each a run of scalars made by one operation.

Besides the rows of `ops.OPS` three operations exist only here: ``variable`` (an argument of the program),
``constant`` (numbers known while tracing) and ``segment_sum`` (sums of consecutive operands, with CSR offsets).
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

import numpy as np

from .errors import InternalError
from .ids import Ids
from .ops import OPS

_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Node:
    """A run of ``size`` scalars with the ids ``first, first + 1, ...``."""

    index: int
    op: str
    operands: tuple[Ids, ...]
    shape: tuple[int, ...]
    first: int
    values: np.ndarray = field(default_factory=lambda: _NOTHING)  # of a constant
    # of a segment sum: segment s reads operands[0][offsets[s]:offsets[s+1]]
    offsets: np.ndarray = field(default_factory=lambda: _NOTHING)
    name: str = ""  # of a variable

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def end(self) -> int:
        return self.first + self.size

    @property
    def lanes(self) -> int:
        """Scalars per mesh element: the product of the trailing axes."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def is_leaf(self) -> bool:
        return self.op in ("variable", "constant")

    @property
    def ids(self) -> Ids:
        return Ids.contiguous(self.first, self.shape)


@dataclass(eq=False)
class Graph:
    """Nodes in the order of their creation, which is a topological order. Equal nodes are one."""

    nodes: list[Node] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    _known: dict[tuple, Node] = field(default_factory=dict)
    _reads: dict[int, tuple] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many scalars the graph stands for."""
        return self.nodes[-1].end if self.nodes else 0

    def _append(self, key: tuple | None, op: str, operands: tuple[Ids, ...], shape: tuple[int, ...], **payload) -> Node:
        if key is not None and key in self._known:
            return self._known[key]
        node = Node(len(self.nodes), op, operands, tuple(shape), self.size, **payload)
        self.nodes.append(node)
        self.firsts.append(node.first)
        if key is not None:
            self._known[key] = node
        return node

    def variable(self, name: str, shape: tuple[int, ...]) -> Node:
        return self._append(None, "variable", (), shape, name=name)

    def constant(self, values: np.ndarray) -> Node:
        values = np.array(values, np.float64)
        values.flags.writeable = False
        key = ("constant", values.shape, values.tobytes())
        return self._append(key, "constant", (), values.shape, values=values)

    def apply(self, op: str, operands: tuple[Ids, ...]) -> Node:
        """An elementwise node over operands of one shape."""
        keys = [o.key for o in operands]
        if OPS[op].is_commutative:
            keys.sort(key=repr)
        return self._append((op, *keys), op, operands, operands[0].shape)

    def segment_sum(self, summands: Ids, offsets: np.ndarray) -> Node:
        offsets = offsets.astype(np.int32 if summands.size < 2**31 else np.int64, copy=False)
        key = ("segment_sum", summands.key, hash(offsets.tobytes()))
        return self._append(key, "segment_sum", (summands,), (len(offsets) - 1,), offsets=offsets)

    def node_of(self, scalar: int) -> Node:
        """The node that an id belongs to (empty nodes own none)."""
        return self.nodes[bisect.bisect_right(self.firsts, scalar) - 1]

    def nodes_of(self, view: Ids) -> list[Node]:
        """The nodes that a view reads, in order."""
        return [node for node, _ in self.reads_of(view)]

    def reads_of(self, view: Ids) -> list[tuple[Node, int]]:
        """The nodes that a view reads, in order, and how many entries of the view belong to each."""
        if not view.size:
            return []
        low, high = self.node_of(view.lowest), self.node_of(view.highest)
        if low is high:
            return [(low, view.size)]
        if id(view) not in self._reads:
            # the view is kept, so that its id stays its own
            self._reads[id(view)] = (view, self._counted(view, self.nodes[low.index : high.index + 1]))
        return self._reads[id(view)][1]

    def _counted(self, view: Ids, nodes: list[Node]) -> list[tuple[Node, int]]:
        ids = view.to_array().ravel()
        below = [int(np.count_nonzero(ids < n.first)) for n in nodes] + [len(ids)]
        counts = [(n, after - before) for n, before, after in zip(nodes, below, below[1:], strict=False)]
        return [(n, count) for n, count in counts if count]

    def local(self, node: Node, view: Ids) -> Ids:
        """A view's positions inside a node."""
        return Ids(view.shape, view.offset - node.first, view.strides, view.base)

    def check(self) -> None:
        """Operands come before their node and have its shape."""
        for node in self.nodes:
            for operand in node.operands:
                if operand.size and operand.highest >= node.first:
                    raise InternalError("trace", f"node {node.index} ({node.op}) reads a later scalar")
                if node.op != "segment_sum" and operand.shape != node.shape:
                    raise InternalError("trace", f"node {node.index} ({node.op}) has an operand of another shape")

    def __str__(self) -> str:
        return "\n".join(f"n{n.index} = {n.op}{list(n.shape)}" for n in self.nodes)


@dataclass(frozen=True, eq=False)
class Traced:
    """What `trace` gives: the graph, the outputs as views over its ids, and how to rebuild the results.

    outputs : one view per array of the result, in the order of `results.flatten`
    variables : the nodes of the program's arguments, in call order
    """

    graph: Graph
    variables: tuple[Node, ...]
    outputs: tuple[Ids, ...]

    def check(self) -> None:
        self.graph.check()
