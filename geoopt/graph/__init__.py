"""The expression graph: long nodes, each a run of scalars made by one operation.

Besides the rows of `ops.OPS` and `block_ops.BLOCK_OPS` eight operations exist only here: ``variable`` (an argument of
the program), ``constant`` (numbers known while tracing), ``segment_sum`` (sums of consecutive
operands), ``join`` (its operand, which comes from several nodes), until `lift` has run ``scalars`` (a tape of
numbers made one by one), and until `phases` has run ``solution`` (of a linear system, whose operands are the values of
the matrix and the right-hand side), ``while`` and ``loop`` (see `graph.while_loop`).
"""

from __future__ import annotations

import bisect
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..block_ops import BLOCK_OPS, lanes_of
from ..errors import InternalError
from ..integers.gathers import replace_range
from ..integers.hashing import content
from ..integers.ids import Ids, id_dtype
from ..integers.owners import owner_counts, owners
from ..integers.segments import Segments
from ..ops import OPS
from .node import Node
from .runs import Runs
from .system import System
from .tape import CODES, NONE, Tape

_OF_OTHER_SHAPES = ("segment_sum", "solution", "while", "loop")  # than their operands are
PACKED = (1 << 16) - 1  # so many scalars or so are recorded before the tape packs them


@dataclass(eq=False)
class Graph:
    """Nodes in the order of their creation, which is a topological order. Equal nodes are one."""

    nodes: list[Node] = field(default_factory=list)
    firsts: array = field(default_factory=lambda: array("q"))  # of each node
    size: int = 0  # how many scalars the graph stands for
    blocks: list[tuple[Ids, ...]] = field(default_factory=list)  # arrays that the author tagged as one block
    is_loop: bool = False  # whether the code that makes it loops over elements, as `symbolic.repetition` found ...
    next_look: int = 0  # ... and how many nodes there are when it looks again
    repeats: array = field(default_factory=lambda: array("q"))  # nodes made again, each with the size of the graph then
    given: dict[int, np.ndarray | Ids] = field(default_factory=dict)  # what variables are in the first call, by node
    values: Any = None  # `values.Values` of the first call, once they have been asked for
    path: Any = None  # `symbolic.paths.Path` of the run that makes it
    _known: dict[tuple, Node] = field(default_factory=dict)
    _reads: WeakKeyDictionary[Ids, list] = field(default_factory=WeakKeyDictionary)
    _below: dict[Node, list[Node]] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)
    runs: Runs | None = None  # of code with branches, which is run along each of its paths
    _tape: Tape = field(default_factory=Tape)  # of the scalars made since the last node

    def append(self, key: tuple | None, op: str, operands: tuple[Ids, ...], shape: tuple[int, ...], **payload) -> Node:
        """A new node, or one that is there with the key."""
        if key is not None and key in self._known:
            known = self._known[key]
            self.repeats.extend((known.index, self.size))
            return known
        self.finish()
        node = Node(len(self.nodes), op, operands, tuple(shape), self.size, **payload)
        self.nodes.append(node)
        self.firsts.append(node.first)
        self.size = node.end
        if key is not None:
            self._known[key] = node
        return node

    def finish(self) -> None:
        """Make a node of the scalars on the tape."""
        if not len(self._tape):
            return
        tape, self._tape = self._tape, Tape()
        first = self.size - len(tape)
        self.nodes.append(Node(len(self.nodes), "scalars", (), (len(tape),), first, tape=tape))
        self.firsts.append(first)

    def record(self, code: int, left: int, right: int = NONE, third: int = NONE) -> int:
        """The id of one scalar made by an operation of `tape.CODES`. Unlike `apply`, this finds no equal ones, but of
        an earlier run of the same code."""
        size = self.size
        if self.runs is not None:
            known = self.runs.again((code, left, right, third), size)
            if known != size:
                return known
        self._tape.latest += (code, left, right)  # millions are made, so this takes no call
        self.size = size + 1
        if third >= 0:
            self._tape.append_third(third)
        if not size & PACKED:
            self._tape.pack()
        return size

    def record_vector(self, code: int, columns: Sequence[Sequence[int]]) -> int:
        """The first of the scalars that an operation makes of columns of up to three operands."""
        first, count = self.size, len(columns[0])
        if len(columns) == 3:
            for operands in zip(*columns, strict=True):
                self._tape.latest += (code, *operands[:2])
                self._tape.append_third(operands[2])
        else:
            rows = zip(repeat(code), columns[0], columns[1] if len(columns) == 2 else repeat(NONE))
            self._tape.latest += chain.from_iterable(rows)
        self.size += count
        self._tape.mark_vector(count)
        if len(self._tape.latest) > PACKED:
            self._tape.pack()
        return first

    def number(self, value: float) -> int:
        """The id of a number."""
        key = value if value else repr(value)  # 0.0 and -0.0 are equal, but not the same
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = self.size
            self._tape.latest += (CODES["constant"], len(self._tape.values), NONE)
            self._tape.values.append(value)
            self.size += 1
        return known

    def variable(self, name: str, shape: tuple[int, ...]) -> Node:
        return self.append(None, "variable", (), shape, name=name)

    def constant(self, values: np.ndarray, given: bool = False) -> Node:
        """given : nobody else writes to the values any more, so that they are not copied"""
        values = np.asarray(values, np.float64) if given else np.array(values, np.float64)
        values.flags.writeable = False
        key = ("constant", values.shape, content(values))
        return self.append(key, "constant", (), values.shape, values=values)

    def apply(self, op: str, operands: tuple[Ids, ...]) -> Node:
        """An elementwise node over operands of one shape."""
        keys = [o.key for o in operands]
        if OPS[op].is_commutative:
            keys.sort(key=repr)
        return self.append((op, *keys), op, operands, operands[0].shape)

    def apply_block(self, op: str, operands: tuple[Ids, ...]) -> Node:
        """An operation of `BLOCK_OPS` on elements of which each operand is a column (m,): a node (m, lanes)."""
        shape = (*operands[0].shape, lanes_of(op, len(operands)))
        return self.append((op, *(o.key for o in operands)), op, operands, shape)

    def segment_sum(self, summands: Ids, segments: Segments) -> Node:
        key = ("segment_sum", summands.key, segments.key)
        return self.append(key, "segment_sum", (summands,), (len(segments),), segments=segments)

    def solution(self, system: System, values: Ids, right: Ids) -> Node:
        """The solution of a linear system. values : (nnz,) of the matrix; right : (n,) or (n, k)"""
        key = ("solution", system.key, values.key, right.key)
        return self.append(key, "solution", (values, right), right.shape, system=system)

    def join(self, view: Ids) -> Node:
        return self.append(("join", view.key), "join", (view,), view.shape)

    @property
    def keys(self) -> Iterable[tuple]:
        """What tells the nodes that are no variables, in order."""
        return self._known

    def node_of(self, scalar: int) -> Node:
        """The node that an id belongs to (empty nodes own none); numbers on the tape become one when asked for."""
        if scalar >= self.size - len(self._tape):
            self.finish()
        return self.nodes[bisect.bisect_right(self.firsts, scalar) - 1]

    def on_tape(self, scalar: int) -> tuple[Tape | None, int]:
        """The tape that a scalar is on, and where; no tape for those of other nodes. This makes no node."""
        first = self.size - len(self._tape)
        if scalar >= first:
            return self._tape, scalar - first
        node = self.node_of(scalar)
        return node.tape, scalar - node.first

    def owners(self, ids: np.ndarray) -> np.ndarray:
        """The index of the node that each of some ids belongs to."""
        return owners(self.firsts, ids)

    def tagged(self) -> list[set[int]]:
        """Per block that the author tagged, the indices of the nodes that its values belong to."""
        return [{n.index for view in block for n in self.nodes_of(view)} for block in self.blocks]

    def below(self, node: Node) -> list[Node]:
        """The nodes that a node reads, operand by operand."""
        if node not in self._below:
            self._below[node] = [read for operand in node.operands for read in self.nodes_of(operand)]
        return self._below[node]

    def nodes_of(self, view: Ids) -> list[Node]:
        """The nodes that a view reads, in order."""
        reads = self.reads_of(view)
        return [reads[0][0]] if len(reads) == 1 else [node for node, _ in reads]

    def reads_of(self, view: Ids) -> list[tuple[Node, int]]:
        """The nodes that a view reads, in order, and how many entries of the view belong to each."""
        size = prod(view.shape)
        if not size:
            return []
        lowest, highest = view.bounds
        if highest >= self.size - len(self._tape):
            self.finish()
        after = bisect.bisect_right(self.firsts, lowest)
        if after == len(self.firsts) or highest < self.firsts[after]:
            return [(self.nodes[after - 1], size)]
        if view not in self._reads:
            high = bisect.bisect_right(self.firsts, highest, after)
            self._reads[view] = self._counted(view, after - 1, high)
        return self._reads[view]

    def know_reads(self, view: Ids, reads: list[tuple[Node, int]]) -> None:
        """Tell `reads_of` a view that lists its ids, which would count them: the nodes in any order, perhaps twice."""
        counts = Counter[Node]()
        for node, count in reads:
            counts[node] += count
        self._reads[view] = sorted(counts.items(), key=lambda read: read[0].index)

    def _counted(self, view: Ids, begin: int, end: int) -> list[tuple[Node, int]]:
        """As `reads_of`. begin, end : between which nodes these are"""
        if view.size < end - begin:
            places = Counter(bisect.bisect_right(self.firsts, i, begin, end) - 1 for i in view.to_array().flat)
            return [(self.nodes[place], places[place]) for place in sorted(places)]
        nodes = self.nodes[begin:end]
        found = owner_counts([n.first for n in nodes], view.to_array().ravel())
        return [(n, int(count)) for n, count in zip(nodes, found, strict=True) if count]

    def local(self, node: Node, view: Ids) -> Ids:
        """A view's positions inside a node."""
        return view.shifted(-node.first)

    def through(self, view: Ids, joins: set[int]) -> Ids:
        """A view past some joins: the ids of what they join."""
        while True:
            nodes = self.nodes_of(view)
            found = [n for n in nodes if n.index in joins]
            if not found:
                return view
            flat = view.reshape((view.size,))
            if len(nodes) == 1:
                view = nodes[0].operands[0].compose(self.local(nodes[0], flat)).reshape(view.shape)
                continue
            ids = flat.to_array(id_dtype(self.size)).copy()
            for node in found:
                replace_range(ids, node.first, node.operands[0].to_array(ids.dtype.type).ravel())
            view = Ids.spaced(ids.reshape(view.shape))

    def check(self) -> None:
        """Operands come before their node and have its shape."""
        for node in self.nodes:
            for operand in node.operands:
                if operand.size and operand.highest >= node.first:
                    raise InternalError("trace", f"node {node.index} ({node.op}) reads a later scalar")
                if operand.size and operand.lowest < 0 and operand.to_array().min() < 0:
                    raise InternalError("trace", f"node {node.index} ({node.op}) reads a scalar that there is not")
                wanted = node.shape[:1] if node.op in BLOCK_OPS else node.shape
                if node.op not in _OF_OTHER_SHAPES and operand.shape != wanted:
                    raise InternalError("trace", f"node {node.index} ({node.op}) has an operand of another shape")

    def __str__(self) -> str:
        return "\n".join(self._line(n) for n in self.nodes)

    def _line(self, node: Node) -> str:
        reads = [" ".join(f"n{n.index}" for n in self.nodes_of(o)) for o in node.operands]
        what = node.name if node.op == "variable" else f"({', '.join(reads)})" if reads else ""
        return f"n{node.index}{list(node.shape)} = {node.op} {what}".rstrip()


@dataclass(frozen=True, eq=False)
class Traced:
    """What `trace` and `lift` give of a program: the graph, and the outputs as views over its ids.

    outputs : one view per array of the result, in the order of `trace.results`
    variables : the nodes of the program's arguments, in call order
    """

    graph: Graph
    variables: tuple[Node, ...]
    outputs: tuple[Ids, ...]

    def check(self) -> None:
        self.graph.check()

    @property
    def key(self) -> tuple:
        """Equal keys mean the same program, but for the names of its variables."""
        places = tuple((v.index, v.shape) for v in self.variables)
        return places, tuple(self.graph.keys), tuple(view.key for view in self.outputs)

    def __str__(self) -> str:
        graph = self.graph
        outputs = [f"out{i}{list(v.shape)} <- {', '.join(f'n{n.index}' for n in graph.nodes_of(v))}"
                   for i, v in enumerate(self.outputs)]  # fmt: skip
        return "\n".join([str(graph), *outputs])
