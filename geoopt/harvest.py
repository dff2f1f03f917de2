"""Stage `harvest`: walk the expressions of all members of a group at once and collect their leaves.

Takes: `Groups`.
Gives: `Kernels`: per group one template, and per distinct leaf one column of ids or constants.
Ensures: equal columns of ids are one leaf; a column of equal constants is a literal.
Paper: leaf harvesting; uniform and varying constants. The walk visits each operation of the source once,
with whole columns of ids, never a member by itself.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .block_ops import BLOCK_OPS
from .errors import InternalError
from .graph import Node
from .groups import Group, Groups
from .integers.cores import divided
from .integers.gathers import taken
from .integers.ids import Ids, id_dtype
from .integers.segments import Segments, first_of
from .kernels import Kernel, Kernels, Leaf, Loop
from .layout import Place
from .native import compiled
from .ops import OPS
from .stages import Context
from .template import Expression, Template

# a visit asks for the expressions of other columns and is sent them, so that depth costs no recursion
Visit = Generator[tuple[Ids, "int | None"], Any, Expression]


def harvest(groups: Groups, context: Context) -> Kernels:
    kernels = tuple(_Walk(groups, g).kernel() for g in groups.groups)
    return Kernels(groups.layout, kernels)


class _Walk:
    """The walk over one group."""

    def __init__(self, groups: Groups, group: Group):
        self.groups, self.group = groups, group
        self.graph = groups.cut.graph
        self.structure = groups.structure
        self.template = Template()
        self.leaves: list[Leaf] = []
        self.loops: list[Loop] = []
        self.streamed: list[tuple[Expression, Place]] = []
        self._seen: dict[tuple, Expression] = {}

    def kernel(self) -> Kernel:
        roots = [self._root(r.ids) for r in self.group.roots]
        writes = [r.writes for r in self.group.roots]
        return Kernel(
            self.template,
            (*roots, *(e for e, _ in self.streamed)),
            (*writes, *((place,) for _, place in self.streamed)),
            tuple(self.leaves),
            tuple(self.loops),
            self.group.level,
            self.group.size,
        )

    def _root(self, column: Ids) -> Expression:
        nodes = self.graph.nodes_of(column)
        if len(nodes) == 1 and not nodes[0].is_leaf and not self.structure.reads(nodes[0], self.group.level):
            return self._run(self._computed(nodes[0], column, None))
        return self._run(self._visit(column, None))

    def _run(self, visit: Visit) -> Expression:
        """Run a visit and all that it asks for; expressions may be deeper than Python's stack."""
        stack, found = [visit], None
        while stack:
            try:
                wanted = stack[-1].send(found)
            except StopIteration as finished:
                stack.pop()
                found = finished.value
                continue
            stack.append(self._visit(*wanted))
            found = None
        assert found is not None
        return found

    def _visit(self, column: Ids, loop: int | None) -> Visit:
        """The expression of a column of ids, one per member or per term of a loop."""
        column = column.canonical()
        key = (loop, column.key)
        if key not in self._seen:
            self._seen[key] = yield from self._expression(column, loop)
        return self._seen[key]

    def _expression(self, column: Ids, loop: int | None) -> Visit:
        nodes = self.graph.nodes_of(column)
        if all(n.op == "constant" for n in nodes):
            return self._constant(nodes, column, loop)
        if all(self.structure.reads(n, self.group.level) for n in nodes):
            return self._leaf(Leaf(column, None, loop))
        joins = {n.index for n in nodes if n.op == "join" and not self.structure.reads(n, self.group.level)}
        if joins:
            return (yield self.graph.through(column, joins), loop)
        if len(nodes) == 1:
            return (yield from self._computed(nodes[0], column, loop))
        return (yield from self._from_several_nodes(nodes, column, loop))

    def _leaf(self, leaf: Leaf) -> Expression:
        self.leaves.append(leaf)
        return self.template.make("leaf", (), len(self.leaves) - 1)

    def _constant(self, nodes: list[Node], column: Ids, loop: int | None) -> Expression:
        if len(nodes) == 1 and nodes[0].size == 1:
            return self.template.make("constant", (), float(nodes[0].values.reshape(())))
        if len(nodes) == 1 and column.is_contiguous():
            first = column.offset - nodes[0].first
            values = nodes[0].values.ravel()[first : first + column.size]
        else:
            ids = column.to_array()
            values = np.empty(len(ids))
            for node in nodes:
                inside = node.places_in(ids)
                values[inside] = node.values.ravel()[ids[inside] - node.first]
        if len(values) and (values == values[0]).all():
            return self.template.make("constant", (), float(values[0]))
        if loop is not None:
            self.loops[loop] = replace(self.loops[loop], has_runs=False)  # those are of what memory has
        return self._leaf(Leaf(None, values, loop))

    def _computed(self, node: Node, column: Ids, loop: int | None) -> Visit:
        local = self.graph.local(node, column)
        if node.op == "join":
            return (yield node.operands[0].compose(local), loop)
        if node.op == "segment_sum":
            return (yield from self._sum(node, local, loop))
        if node.op in BLOCK_OPS:
            return (yield from self._lane(node, local, loop))
        operands = self._arranged(node.op, [o.compose(local).canonical() for o in node.operands])
        return (yield from self._applied(node.op, operands, loop))

    def _lane(self, node: Node, local: Ids, loop: int | None) -> Visit:
        """One lane of a block operation, which takes all lanes of the element."""
        entries = local.to_array()
        elements, lanes = np.divmod(entries, node.lanes)
        if (lanes != lanes[:1]).any():
            raise InternalError("harvest", f"members join different lanes of {node.op}")
        column = Ids.explicit(elements).canonical()
        block = yield from self._applied(node.op, [o.compose(column).canonical() for o in node.operands], loop)
        return self.template.make("lane", (block,), int(lanes[0]))

    def _applied(self, op: str, operands: list[Ids], loop: int | None) -> Visit:
        args = []
        for operand in operands:
            args.append((yield operand, loop))
        return self.template.make(op, tuple(args))

    def _ordered(self, operands: list[Ids]) -> list[Ids]:
        """Operands of a commutative operation in the order of their structure, member by member."""
        left, right = (self.structure.of_view(o, self.group.level) for o in operands)
        if left.size == 1 and right.size == 1:
            return operands if left[0] <= right[0] else operands[::-1]
        swap = np.broadcast_to(left > right, (operands[0].size,))
        if not swap.any() or swap.all():
            return operands[::-1] if swap.any() else operands
        a, b = (o.to_array() for o in operands)
        return [Ids.explicit(np.where(swap, b, a)), Ids.explicit(np.where(swap, a, b))]

    def _from_several_nodes(self, nodes: list[Node], column: Ids, loop: int | None) -> Visit:
        """Equal structure from different nodes: join the operands' columns node by node."""
        first = nodes[0]
        if first.op == "segment_sum" or any(n.op != first.op or n.is_leaf for n in nodes):
            raise InternalError("harvest", f"members join different operations: {[n.op for n in nodes]}")
        ids = column.to_array()
        joined = [np.empty(len(ids), np.int64) for _ in first.operands]
        for node in nodes:
            inside = node.places_in(ids)
            local = Ids.explicit(ids[inside] - node.first)
            operands = [o.compose(local) for o in node.operands]
            for target, operand in zip(joined, self._arranged(node.op, operands), strict=True):
                target[inside] = operand.to_array()
        columns = [Ids.explicit(j.astype(id_dtype(self.graph.size), copy=False)) for j in joined]
        return (yield from self._applied(first.op, columns, loop))

    def _arranged(self, op: str, operands: list[Ids]) -> list[Ids]:
        return self._ordered(operands) if OPS[op].is_commutative else operands

    # -- sums ---------------------------------------------------------------------------------------

    def _sum(self, node: Node, local: Ids, loop: int | None) -> Visit:
        """A sum as unrolled additions of its few terms and loops over its many, by structure of the terms."""
        kind_of = self.structure.of_view(node.operands[0], self.group.level)
        kinds, counts = self.structure.terms_of_sum(node, kind_of)
        shapes = self.structure.sum_shape(node, counts)
        first = int(local[:1].to_array()[0]) if local.size else 0
        parts: list[Expression] = []
        for k in range(len(kinds)):
            if not local.size or not counts[k][first]:
                continue
            terms = _Terms(node, local, None if len(kinds) == 1 else kind_of == kinds[k], counts[k])
            if shapes[k][first] >= 0:
                for at in terms.unrolled(int(counts[k][first])):
                    parts.append((yield node.operands[0].compose(at), loop))
                    self._stream(node, parts[-1], at, loop)
            else:
                parts.append((yield from self._looped(node, *terms.listed(), loop)))
        if not parts:
            return self.template.make("constant", (), 0.0)
        total = parts[0]
        for p in parts[1:]:
            total = self.template.make("add", (total, p))
        return total

    def _looped(self, node: Node, segments: Segments, positions: Ids, loop: int | None) -> Visit:
        if loop is not None:
            raise InternalError("harvest", "a loop inside a loop; decompose should have stored the inner sum")
        number = self._loop(Loop(segments, node.index in self.groups.cut.runs))
        body = yield node.operands[0].compose(positions), number
        self._stream(node, body, positions, number)
        return self.template.make("sum", (body,), number)

    def _loop(self, new: Loop) -> int:
        """The number of a loop; sums with equally many terms in every member are one loop, and share what they read."""
        for number, loop in enumerate(self.loops):
            if loop.has_runs == new.has_runs and np.array_equal(loop.segments.lengths, new.segments.lengths):
                return number
        self.loops.append(new)
        return len(self.loops) - 1

    def _stream(self, node: Node, term: Expression, positions: Ids, loop: int | None) -> None:
        """Have terms of a sum written where no other kernel does that."""
        stream = self.groups.cut.streams.get(node.index)
        if stream is None:
            return
        entries = stream.entries[positions.to_array()]
        if len(entries) and entries[0] >= 0:  # of one structure all are, or none: stored ones are loaded
            output = len(self.groups.cut.traced.variables) + stream.output
            self.streamed.append((term, Place(output, Ids.explicit(entries).canonical(), loop)))


@dataclass(frozen=True, eq=False)
class _Terms:
    """The terms of one kind of the members' sums, by their positions among the terms of the node.

    local : the members' sums, of the node's;  chosen : whether each term is of the kind, None if all are
    counts : of the node's sums
    """

    node: Node
    local: Ids
    chosen: np.ndarray | None
    counts: np.ndarray

    def listed(self) -> tuple[Segments, Ids]:
        """Each member's terms, and the positions of all."""
        own = self.node.segments
        if self.chosen is None and self.local.size == self.node.size and self.local.is_contiguous():
            return own, Ids.contiguous(0, (own.total,))
        sums = self.local.to_array()
        found = Segments.of_lengths(taken(self.counts, sums))
        if self.chosen is None:
            return found, Ids.explicit(own.entries(sums)).canonical()
        positions = np.empty(found.total, own.starts.dtype)
        parts = own.lengths, own.starts, sums, self.chosen, found.lengths, found.starts
        divided(len(sums), lambda i, j: _list(*parts, i, j, positions), len(positions))
        return found, Ids.explicit(positions).canonical()

    def unrolled(self, count: int) -> list[Ids]:
        """A column for each of ``count`` terms, which every member has."""
        if self.chosen is None:
            first = self.node.segments.firsts(self.local.to_array())
            return [Ids.explicit(first + first.dtype.type(t)).canonical() for t in range(count)]
        _, positions = self.listed()
        each = positions.to_array().reshape(-1, count)
        return [Ids.explicit(np.ascontiguousarray(each[:, t])).canonical() for t in range(count)]


@compiled
def _list(lengths, starts, sums, chosen, own_lengths, own_starts, begin, end, out):
    """The chosen terms of the sums of members begin to end - 1. own_lengths, own_starts : how many each member has"""
    at = first_of(own_lengths, own_starts, begin)
    for member in range(begin, end):
        first = first_of(lengths, starts, sums[member])
        for term in range(first, first + lengths[sums[member]]):
            if chosen[term]:
                out[at] = term
                at += 1
