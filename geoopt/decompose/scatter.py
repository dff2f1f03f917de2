"""Which sums are scattered: elements add their values straight into the outputs, nothing is stored in between.

A matrix assembled from blocks of elements is such a sum. What its entries are without the elements (zero, or what
is added to the sum) is written first; then each element adds its values, in an order that does not depend on the
number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..cut import MOST_PLACES, Scatter
from ..graph import Graph, Node, Traced
from ..graph.references import Reference, has_lanes, reachable
from ..integers.gathers import count_into, taken
from ..integers.ids import Ids
from ..integers.segments import ranges
from ..integers.sorting import sorting
from ..native import compiled
from ..ops import OPS
from .mirrors import align

LINEAR = {"add": (1, 1), "subtract": (1, -1), "negative": (-1,)}  # signs of the operands

_Use = tuple[int, np.ndarray, np.ndarray, np.ndarray]  # output, scalars, entries, signs


def scatters(
    traced: Traced, refs: dict[int, list[Reference]], stored: Collection[int], least: float
) -> dict[int, list[Scatter]]:
    """The stored nodes that are scattered, by index. least : values that an element of some of them must have"""
    copies = _copies(traced, refs)
    reads: dict[int, float] = {}  # per number of elements, about how often outputs have a value of each
    for r in (r for references in refs.values() for r in references):
        if r.reader.op == "segment_sum" and r.target.index in stored:
            elements = math.prod(r.target.shape[:1])
            values = r.count / max(elements, 1)
            reads[elements] = reads.get(elements, 0.0) + values * copies.get(r.reader.index, 2)
    if max(reads.values(), default=0.0) < least:
        return {}
    return _Sums(traced, refs, stored).scattered(least)


def _copies(traced: Traced, refs: dict[int, list[Reference]]) -> dict[int, float]:
    """How many entries of outputs have a scalar of each node, on average; of nodes that only outputs read. Others may
    go to two entries that mirror each other."""
    inner = {r.target.index for references in refs.values() for r in references}
    found: dict[int, float] = {}
    for view in traced.outputs:
        for node, count in traced.graph.reads_of(view):
            if node.index not in inner:
                found[node.index] = found.get(node.index, 0.0) + count / max(node.size, 1)
    return found


def without_sums(traced: Traced, found: dict[int, list[Scatter]]) -> Traced:
    """The program with zeros for the sums that are scattered: what is there before elements add to it.

    What reads zeros of a node reads a single one, so that equal readers are seen to be equal.
    """
    graph, nodes = traced.graph, list(traced.graph.nodes)
    zeros = dict.fromkeys((s for parts in found.values() for part in parts for s in part.sums), 0.0)  # or -0.0
    for index, node in enumerate(nodes):
        read = [graph.nodes_of(o) if o.size else [] for o in node.operands]
        of_zeros = [[n for n in of if n.index in zeros] for of in read]
        if index not in zeros and node.op in LINEAR and any(of_zeros) and all(len(of) == 1 for of in read):
            numbers = [zeros.get(n.index, _number(n)) for [n] in read]
            if None not in numbers:
                zeros[index] = float(OPS[node.op].numpy(*numbers))
        if index in zeros:
            values = np.broadcast_to(zeros[index], node.shape)
            nodes[index] = Node(index, "constant", (), node.shape, node.first, values)
        elif any(of_zeros):
            operands = tuple(_of_single(o, those) for o, those in zip(node.operands, of_zeros, strict=True))
            nodes[index] = replace(node, operands=operands)
    return replace(traced, graph=Graph(nodes, graph.firsts, graph.size, graph.blocks))


def _number(node: Node) -> float | None:
    """What all scalars of a constant are, if they are one number."""
    values = node.values.ravel()
    if node.op != "constant" or (values.view(np.int64) != values[:1].view(np.int64)).any():
        return None
    return float(values[0])


def _of_single(view: Ids, zeros: list[Node]) -> Ids:
    """A view that reads the first scalar of some nodes instead of any other."""
    if not zeros:
        return view
    ids = view.to_array()
    for node in zeros:
        ids = np.where((ids >= node.first) & (ids < node.end), ids.dtype.type(node.first), ids)
    return Ids.spaced(ids)


@dataclass(frozen=True, eq=False)
class _Flow:
    """Where a node's scalars go: scalar i to the entries[offsets[i]:offsets[i + 1]] of one output, with signs."""

    output: int
    offsets: np.ndarray
    entries: np.ndarray
    signs: np.ndarray

    def of(self, scalars: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray]:
        """For some scalars, numbers into them and into the entries: one pair for each entry that one goes to."""
        if len(self.entries) == len(self.offsets) - 1:  # one each
            return slice(None), scalars
        counts = np.diff(self.offsets)[scalars]
        return np.repeat(np.arange(len(scalars)), counts), ranges(self.offsets[scalars], counts)


class _Sums:
    """The sums of a program whose values are added to outputs, and nothing else reads them."""

    def __init__(self, traced: Traced, refs: dict[int, list[Reference]], stored: Collection[int]):
        self.traced, self.graph, self.stored = traced, traced.graph, stored
        self.readers: dict[int, dict[int, Node]] = {}
        self.jumps: dict[int, set[int]] = {}  # the readers in other elements
        self.targets_of: dict[int, dict[int, Node]] = {}
        for r in (r for references in refs.values() for r in references):
            self.readers.setdefault(r.target.index, {})[r.reader.index] = r.reader
            self.targets_of.setdefault(r.reader.index, {})[r.target.index] = r.target
            self.jumps.setdefault(r.target.index, set()).update([] if r.is_regular else [r.reader.index])
        self.live = reachable(traced)
        self.outputs_of: dict[int, list[int]] = {}
        for number, view in enumerate(traced.outputs):
            for node in self.graph.nodes_of(view):
                self.outputs_of.setdefault(node.index, []).append(number)

    def scattered(self, least: float) -> dict[int, list[Scatter]]:
        """By element node, where its scalars are added. least : see `scatters`"""
        sums = [n for n in self.live if self._is_plain_sum(n)]
        flows = self._flows(sums)
        found_parts = ((n.index, self._parts(n, flow)) for n in sums if (flow := flows[n.index]) is not None)
        parts = {index: of_sum for index, of_sum in found_parts if of_sum is not None}
        while True:  # what a sum that is not scattered reads stays stored, and with it all sums that read it
            values = self._values(parts)
            good = {
                i: of_sum
                for i, of_sum in parts.items()
                if all(self._is_alone(e, parts) for e in of_sum)
                and max(values[self.graph.nodes[e].shape[0]] for e in of_sum) >= least
            }
            if len(good) == len(parts):
                break
            parts = good
        found: dict[int, list[Scatter]] = {}
        for of_sum in parts.values():
            align([pair for part in of_sum.values() if len(part.entries) == 2 for pair in part.mirrored()])
            for element, part in of_sum.items():
                found.setdefault(element, []).append(part)
        return found

    def _values(self, parts: dict[int, dict[int, Scatter]]) -> dict[int, int]:
        """Per number of elements, how many values each of them adds."""
        values: dict[int, int] = {}
        for element, part in (pair for of_sum in parts.values() for pair in of_sum.items()):
            extent = self.graph.nodes[element].shape[0]
            values[extent] = values.get(extent, 0) + part.values
        return values

    def _is_plain_sum(self, node: Node) -> bool:
        """Whether a node sums stored values of elements."""
        summands = self.targets_of.get(node.index, {}).values() if node.op == "segment_sum" else ()
        return bool(summands) and all(
            t.index in self.stored and t.op not in ("segment_sum", "join") and t.index not in self.outputs_of
            for t in summands
        )

    def _is_alone(self, element: int, parts: dict) -> bool:
        """Whether nothing but scattered sums reads a node in other elements."""
        return all(reader in parts for reader in self.jumps[element])

    def _flows(self, sums: list[Node]) -> dict[int, _Flow | None]:
        """Where sums go, straight or through additions; None where something else reads them, too."""
        reached = {n.index for n in sums}
        for node in self.live:
            if any(t in reached for t in self.targets_of.get(node.index, ())):
                reached.add(node.index)
        flows: dict[int, _Flow | None] = {}
        for index in sorted(reached, reverse=True):
            flows[index] = self._flow(self.graph.nodes[index], flows)
        return flows

    def _flow(self, node: Node, flows: dict[int, _Flow | None]) -> _Flow | None:
        """Of one node, from those of its readers."""
        uses = [*self._written(node)]
        for reader in self.readers.get(node.index, {}).values():
            flow = flows[reader.index]
            if flow is None or reader.op not in LINEAR:
                return None
            uses += self._through(reader, flow, node)
        if len({output for output, *_ in uses}) != 1:
            return None
        scalars, entries, signs = (np.concatenate(column) for column in list(zip(*uses, strict=True))[1:])
        order, offsets = sorting(scalars, node.size)
        if (offsets[1:] == offsets[:-1]).any():
            return None
        return _Flow(uses[0][0], offsets, entries[order], signs[order])

    def _written(self, node: Node) -> Iterator[_Use]:
        """Its scalars that are entries of outputs."""
        for output in self.outputs_of.get(node.index, ()):
            ids = self.traced.outputs[output].to_array().ravel()
            at = node.places_in(ids)
            yield output, ids[at] - node.first, at.astype(np.int32), np.ones(len(at), np.int8)

    def _through(self, reader: Node, flow: _Flow, node: Node) -> Iterator[_Use]:
        """Its scalars that an addition reads."""
        for operand, sign in zip(reader.operands, LINEAR[reader.op], strict=True):
            ids = operand.to_array().ravel()
            at = node.places_in(ids)
            which, goes = flow.of(at)
            yield flow.output, ids[at[which]] - node.first, flow.entries[goes], sign * flow.signs[goes]

    def _parts(self, node: Node, flow: _Flow) -> dict[int, Scatter] | None:
        """Per node that a sum reads, where its scalars are added; None where elements are not read alike."""
        if (flow.signs != flow.signs[0]).any():
            return None
        terms = node.operands[0].to_array()
        segments, found = node.segments.of_entries, {}
        elements = self.targets_of[node.index].values()
        for element in elements:
            mine, of = terms, segments
            if len(elements) > 1:
                at = element.places_in(terms)
                mine, of = taken(terms, at), taken(segments, at)
            which, goes = flow.of(of)
            scalars = (mine - terms.dtype.type(element.first))[which]
            columns = _columns(element, scalars, taken(flow.entries, goes))
            if columns is None:
                return None
            found[element.index] = Scatter(
                flow.output, columns, int(flow.signs[0]), element.lanes, frozenset({node.index})
            )
        return found


def _columns(element: Node, scalars: np.ndarray, entries: np.ndarray) -> np.ndarray | None:
    """The entries of each scalar of a node, one below another, and -1 where there are no more; None where the
    scalars of one lane have different numbers of them, or a scalar has too many."""
    counts = np.zeros(element.size, np.int32)
    count_into(scalars, counts)
    of_lanes = counts.reshape(-1, element.lanes)
    if not counts.size or (of_lanes != of_lanes[:1]).any() or counts.max() > MOST_PLACES:
        return None
    if not has_lanes(element.shape) and (of_lanes[0] != of_lanes[0, 0]).any():  # all are one column
        return None
    columns = np.full((int(of_lanes[0].max()), element.size), -1, np.int32)
    counts[:] = 0
    _fill(scalars, entries, counts, columns)
    return columns


@compiled
def _fill(scalars, entries, done, columns):
    """Put the entries of each scalar one below another. done : zeros, how many of each scalar's are there"""
    for t in range(len(scalars)):
        columns[done[scalars[t]], scalars[t]] = entries[t]
        done[scalars[t]] += 1
