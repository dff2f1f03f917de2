"""Stage `lift`: scalar-style code becomes the long nodes that array-style code makes.

Takes: `Traced`, whose graph may hold tapes of scalars made one by one.
Gives: `Traced` without tapes, but for those that nothing needs.
Ensures: the same values; scalars of equal structure are one node, whose leading axis is the mesh element wherever
the code's loops show what that is.
Paper: expression grouping, moved to the front: there every scalar stays a tree node of its own.

What is lifted are numbers made one by one and the short vectors and matrices of loops over elements, which `loops`
tells from a few elements' values in array-style code. Scalars with equal structure hashes form a *run*.
Sums that collect from many elements, one term here and one there
(``L[i, j] += w``), become segment sums. When element e of one run reads element e of another, both get
the shape (elements, scalars of each), so that later stages see which references stay in one element. Elements in
succession that read the same values, such as the corners of a face, are one (`elements`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..graph import Graph, Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import LANES, LONGEST_AXIS, reachable
from ..graph.tape import NAMES, NONE
from ..integers.ids import Ids
from ..integers.segments import Segments
from ..ops import OPS
from ..stages import Context
from ..symbolic.unset import reject_reads
from .elements import elements_of
from .loops import work_of
from .scalar_runs import Run, runs_of
from .tape import Joined

MOST_TOGETHER = min(LANES)  # values of an element in one node
FEW, RARE = 256, 1e-3  # scalars made one by one, and their share of all, up to which each is a node of its own


def lift(traced: Traced, context: Context) -> Traced:
    return lifted(traced)


def lifted(traced: Traced) -> Traced:
    """Raises TracingError where the program computes with numbers that nobody has set."""
    found = _lift(traced)
    reject_reads(found)
    return found


def _lift(traced: Traced) -> Traced:
    work = work_of(traced.graph)
    if work is None:
        return traced
    count = sum(node.size for node in reachable(traced) if node.op == "scalars")
    if not work.is_loop and count <= FEW and count <= RARE * traced.graph.size:
        return _with_nodes_of_scalars(traced)
    return _Lifted(Joined(traced, work)).traced()


def _with_nodes_of_scalars(traced: Traced) -> Traced:
    """The program with a node for each scalar on a tape, such as the entries of a small matrix that all elements read.
    All ids stay."""
    graph, nodes, kept = traced.graph, [], {}
    for node in graph.nodes:
        if node.tape is None:
            kept[node.index] = replace(node, index=len(nodes))
            nodes.append(kept[node.index])
            continue
        for i, (code, operands) in enumerate(zip(*node.tape.columns(), strict=True)):
            name, made = NAMES[code], Node(len(nodes), "constant", (), (), node.first + i)
            if name == "constant":
                nodes.append(replace(made, values=np.array(node.tape.values[operands[0]])))
            else:
                ids = tuple(Ids((), int(k), ()) for k in operands if k != NONE)
                nodes.append(replace(made, op=name, operands=ids))
    firsts = array("q", [node.first for node in nodes])
    variables = tuple(kept[node.index] for node in traced.variables)
    return Traced(Graph(nodes, firsts, graph.size, graph.blocks), variables, traced.outputs)


class _Lifted(Rebuild):
    """The new graph; scalars of tapes become entries of runs."""

    def __init__(self, joined: Joined):
        super().__init__(joined.traced)
        self.joined = joined
        self.of_tape = np.full(joined.size, -1, np.int64)  # new ids of the scalars on the tape

    def traced(self) -> Traced:
        joined = self.joined
        for node in self.old.nodes:
            if node.op == "variable":  # also of functions that were differentiated, which nothing needs any more
                self.copy(node)
        found = runs_of(joined)
        shapes = elements_of(joined, found)
        steps: list[tuple[int, int, Run | Node]] = [(run.depth, 0, run) for run in found]
        steps += [(joined.depths[n.index], 1, n) for n in joined.kept]
        for _, _, item in sorted(steps, key=lambda s: s[:2]):
            if isinstance(item, Run):
                self._emit(item, shapes[item.number])
            else:
                self.copy(item)
        return self.result()

    def _emit(self, run: Run, shape: tuple[int, int]) -> None:
        if run.op == "constant":
            first = self.graph.constant(run.values).first
            self.of_tape[run.members] = first + np.arange(len(run.members))
        elif run.op == "collect":
            self._emit_collecting(run, shape)
        else:
            operands = [self._new_ids(o).reshape(shape) for o in run.operands]
            kept, lane_of = _distinct_lanes(run, operands)
            firsts, steps = np.empty(len(kept), np.int64), np.empty(len(kept), np.int64)
            for mine, axes in _parts(len(kept)):
                columns = [o[:, kept[mine]].reshape(shape[0], *axes) for o in operands]
                node = self._node(run, [Ids.spaced(c) for c in columns])
                firsts[mine], steps[mine] = node.first + np.arange(node.lanes), node.lanes
            elements = np.arange(shape[0])[:, None]
            self.of_tape[run.members] = (firsts[lane_of] + steps[lane_of] * elements).ravel()

    def _node(self, run: Run, views: list[Ids]) -> Node:
        return self._sum(views, run.signs) if run.op == "sum" else self.graph.apply(run.op, tuple(views))

    def _sum(self, terms: list[Ids], signs: np.ndarray) -> Node:
        """A sum inside an element, whose added terms come first."""
        total, negate = terms[0], bool(signs[0] < 0)
        for term, sign in zip(terms[1:], signs[1:], strict=True):
            total = self.graph.apply("add" if sign > 0 or negate else "subtract", (total, term)).ids
        return self.graph.apply("negative", (total,)) if negate else self.graph.node_of(total.offset)

    def _emit_collecting(self, run: Run, shape: tuple[int, int]) -> None:
        """One segment sum per scalar of an element."""
        terms, subtracted = self._new_ids(run.terms), run.signs < 0
        is_negative = bool(subtracted.all())
        if subtracted.any() and not is_negative:
            negated = self.graph.apply("negative", (Ids.spaced(terms[subtracted]),))
            terms[subtracted] = negated.first + np.arange(negated.size)
        lengths = np.diff(run.starts)
        for lane in range(shape[1]):
            members = np.arange(lane, len(run.members), shape[1])
            offsets = np.append(0, np.cumsum(lengths[members]))
            picked = np.repeat(run.starts[members] - offsets[:-1], lengths[members]) + np.arange(offsets[-1])
            node = self.graph.segment_sum(Ids.spaced(terms[picked]), Segments.of_lengths(lengths[members]))
            if is_negative:
                node = self.graph.apply("negative", (node.ids,))
            self.of_tape[run.members[members]] = node.first + np.arange(len(members))

    # -- ids ------------------------------------------------------------------------------------------

    def _new_ids(self, references: np.ndarray) -> np.ndarray:
        """New ids of what the tape reads: other entries, or scalars outside."""
        inside = references >= 0
        out = np.empty(len(references), np.int64)
        out[inside] = self.of_tape[references[inside]]
        out[~inside] = self.moved_ids(self.joined.outside[-1 - references[~inside]])
        return out

    def moved_ids(self, ids: np.ndarray) -> np.ndarray:
        out = ids + self.shift[self.old.owners(ids)]
        entries = self.joined.work.columns.entries(ids)
        on_tape = entries >= 0
        out[on_tape] = self.of_tape[entries[on_tape]]
        return out


def _parts(count: int) -> Iterator[tuple[slice, tuple[int, ...]]]:
    """An element's values in parts that are seen as such, however few elements there are (see `has_lanes`), and the
    axes of each."""
    begin = 0
    while begin < count:
        size = min(count - begin, MOST_TOGETHER)
        while (axes := _axes(size)) is None:
            size -= 1
        yield slice(begin, begin + size), axes
        begin += size


def _axes(count: int) -> tuple[int, ...] | None:
    """Short axes of an array of so many entries; None where there are none."""
    if count <= LONGEST_AXIS:
        return (count,) if count > 1 else ()
    for length in range(LONGEST_AXIS, 1, -1):
        if count % length == 0 and (rest := _axes(count // length)) is not None:
            return (*rest, length)
    return None


def _distinct_lanes(run: Run, operands: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The lanes of a run that compute different things, and for each lane its place among them.

    operands : (elements, lanes) each. The same expression written twice for an element is one lane.
    """
    is_ordered = run.op not in OPS or not OPS[run.op].is_commutative
    known: dict[tuple, int] = {}
    kept, lane_of = [], []
    for lane in range(operands[0].shape[1]):
        key = [o[:, lane].tobytes() for o in operands]
        place = known.setdefault(tuple(key if is_ordered else sorted(key)), len(known))
        if place == len(kept):
            kept.append(lane)
        lane_of.append(place)
    return np.array(kept), np.array(lane_of)
