"""Reverse mode on the nodes of a graph: derivatives of one scalar by whole arrays.

A node receives contributions from the views through which its readers see it. Views of the whole node give
elementwise additions, views of one lane (``x[:, 0]``) give columns, in which what is zero stays absent; broadcast
views give sums; all others (gathers, slices) are collected by one segment sum, or only moved where nothing meets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..graph import Graph, Node
from ..graph.references import has_lanes
from ..graph.terms import flat_terms
from ..integers.gathers import has_repeats
from ..integers.ids import Ids, id_dtype
from ..integers.sorting import sorting
from ..symbolic import Symbolic
from ..symbolic.arithmetic import apply, as_symbolic
from ..symbolic.look import Look
from ..symbolic.sums import segment_sum
from .chain import Adjoint, known, passed_on, total, under
from .extremes import choice_of, reader_counts
from .refused import refuse_unknown

Column = tuple[int, ...]  # the trailing indices of one lane of a node


@known.register(Look)
def _(value: Symbolic) -> float | None:
    ids = value.ids
    if not ids.size or ids.base is not None or any(s for s, n in zip(ids.strides, ids.shape, strict=True) if n > 1):
        return None
    node = value.graph.node_of(ids.offset)
    is_constant = node.op == "constant" and ids.offset < node.end  # beyond the last node lies the tape
    return float(node.values.ravel()[ids.offset - node.first]) if is_constant else None


@dataclass
class _Waiting:
    """What a node has received so far."""

    whole: list[Adjoint] = field(default_factory=list)
    lanes: dict[Column, list[Adjoint]] = field(default_factory=dict)
    others: list[tuple[Ids, Adjoint]] = field(default_factory=list)  # positions in the node


def adjoints(graph: Graph, result: Ids, wanted: list[Node]) -> dict[int, Symbolic]:
    """Derivatives of one scalar of a graph by all scalars of some nodes, by node index; absent where they are zero.

    result : a view of one id.  Each derivative has its node's shape.
    """
    return _Reverse(graph, wanted).run(result)


class _Reverse:
    def __init__(self, graph: Graph, wanted: list[Node]):
        self.graph = graph
        self.wanted = {n.index for n in wanted}
        self.active = dependent(graph, self.wanted)
        self.waiting: dict[int, _Waiting] = {}
        self.readers = reader_counts(graph)

    def run(self, result: Ids) -> dict[int, Symbolic]:
        found: dict[int, Symbolic] = {}
        seed = result.reshape((1,))
        self._give(seed, Adjoint(self._as_array(1.0, (1,))))
        for index in range(self.graph.node_of(result.offset).index if result.size else -1, -1, -1):
            waiting = self.waiting.pop(index, None)
            if waiting is None:
                continue
            node = self.graph.nodes[index]
            self._collect(node, waiting)
            if index in self.wanted:
                found[index] = self._whole(node, waiting).chosen()
            self._pass_on(node, waiting)
        return found

    # -- receiving --------------------------------------------------------------------------------------

    def _give(self, view: Ids, adjoint: Adjoint) -> None:
        """Hand the adjoint of a view to the nodes that it reads."""
        reads = self.graph.reads_of(view)
        if len(reads) == 1:
            self._receive(reads[0][0], view, adjoint)
            return
        ids = view.to_array(np.int64).ravel()
        flat = _mapped(adjoint, lambda a: a.reshape(-1))
        for node, _ in reads:
            inside = Ids.spaced(node.places_in(ids))
            part = _mapped(flat, lambda a, inside=inside: a.reading(a.ids.compose(inside)))
            self._receive(node, Ids.spaced(ids[inside.to_array()]), part)

    def _receive(self, node: Node, view: Ids, adjoint: Adjoint) -> None:
        if node.index not in self.active:
            return
        waiting = self.waiting.setdefault(node.index, _Waiting())
        local, adjoint = _in_order(*_without_broadcast(self.graph.local(node, view), adjoint))
        if local.is_contiguous() and local.size == node.size:
            waiting.whole.append(_mapped(adjoint, lambda a: a.reshape(node.shape)))
            return
        columns = _columns(node, local)
        if columns is None:
            waiting.others.append((local, adjoint))
            return
        for lane, at in columns:
            part = _mapped(adjoint, lambda a, at=at: a[(slice(None), *at)])
            waiting.lanes.setdefault(lane, []).append(part)

    def _collect(self, node: Node, waiting: _Waiting) -> None:
        """Bring contributions through gathers and slices into the order of the node."""
        if not waiting.others:
            return
        alike: dict[tuple, tuple[Ids, list[Adjoint]]] = {}  # by gather: what comes through one is one summand
        for local, adjoint in waiting.others:
            alike.setdefault(local.key, (local, []))[1].append(adjoint)
        positions = np.concatenate([local.to_array().ravel() for local, _ in alike.values()])
        adjoints = [total(parts) for _, parts in alike.values()]
        values = _collected(node, positions, [a.chosen() for a in adjoints])
        where = None
        if all(a.where is not None for a in adjoints):
            where = _collected(node, positions, [_marks(a) for a in adjoints]) != 0.0
        waiting.others = []
        waiting.whole.append(Adjoint(values, where))

    def _whole(self, node: Node, waiting: _Waiting) -> Adjoint:
        """All contributions as one adjoint of the node's shape."""
        if not waiting.lanes:
            return total(waiting.whole)
        zero = self._as_array(0.0, node.shape[:1])
        lanes = dict(self._by_lane(node, waiting))
        columns = [lanes[lane].chosen() if lane in lanes else zero for lane in np.ndindex(*node.shape[1:])]
        return Adjoint(zero.reading(Ids.stack([c.ids for c in columns], 1).reshape(node.shape)))

    def _by_lane(self, node: Node, waiting: _Waiting) -> Iterator[tuple[Column, Adjoint]]:
        for lane in np.ndindex(*node.shape[1:]):
            shared = [_mapped(a, lambda a, lane=lane: a[(slice(None), *lane)]) for a in waiting.whole]
            if shared or lane in waiting.lanes:
                yield lane, total(shared + waiting.lanes.get(lane, []))

    # -- passing on -------------------------------------------------------------------------------------

    def _pass_on(self, node: Node, waiting: _Waiting) -> None:
        if node.is_leaf:
            return
        if node.op == "segment_sum":
            view, segments = flat_terms(self.graph, node)
            adjoint = _mapped(self._whole(node, waiting), lambda a: of_segments(a, segments))
            self._give(view, adjoint)
        elif node.op == "join":
            self._give(node.operands[0], self._whole(node, waiting))
        elif node.op == "solution":
            self._through_system(node, self._whole(node, waiting).chosen())
        elif not waiting.lanes and (choice := choice_of(self.graph, node, self.readers)):
            self._to_chosen(*choice, total(waiting.whole))
        elif not waiting.lanes:
            self._through(node.op, total(waiting.whole), node.ids, node.operands)
        else:
            for lane, adjoint in self._by_lane(node, waiting):
                at = (slice(None), *lane)
                self._through(node.op, adjoint, node.ids[at], tuple(o[at] for o in node.operands))

    def _through(self, op: str, adjoint: Adjoint, result: Ids, operands: tuple[Ids, ...]) -> None:
        parts = passed_on(op, adjoint, self._symbolic(result), [self._symbolic(o) for o in operands])
        for view, part in zip(operands, parts, strict=True):
            if part is not None:
                self._give(view, Adjoint(self._as_array(part.value, view.shape), part.where))

    def _through_system(self, node: Node, slope: Symbolic) -> None:
        """With z of Aᵀ z = slope, b gets z, and the entry ij of A gets -z_i x_j; the factor of A serves again."""
        system, (values, right) = node.system, node.operands
        assert system is not None
        z = self._symbolic(self.graph.solution(system.transpose, values, slope.ids).ids)
        self._give(right, Adjoint(z))
        rows, cols = system.places
        products = z[rows] * self._symbolic(node.ids)[cols]
        self._give(values, Adjoint(-(products if products.ndim == 1 else np.sum(products, axis=1))))  # type: ignore[arg-type]

    def _to_chosen(self, numbers: list[Ids], chosen: Symbolic, adjoint: Adjoint) -> None:
        """All numbers at once, so that one node tells what reaches each of them."""
        count, rows = len(numbers), chosen.ids.reshape(chosen.shape or (1,)).shape
        every = Ids.stack(numbers, 0).reshape((count * rows[0], *rows[1:]))
        again = lambda a: a.reading(a.ids.broadcast_to((count, *a.shape)).reshape(every.shape))  # noqa: E731
        place = np.repeat(np.arange(count), rows[0]).reshape(-1, *(1,) * (len(rows) - 1))
        value = under(_mapped(adjoint, again), again(chosen) == place.astype(float)).chosen()
        part = Adjoint(value, value != 0.0)  # numbers can be stored, conditions cannot
        # a number that is there several times, to fill a row, is chosen where it comes first
        listed = every.to_array().reshape(count, rows[0], -1)
        kept = np.flatnonzero(np.append(np.ones((1, rows[0]), bool), (listed[1:] != listed[0]).any(axis=2), axis=0))
        if len(kept) < len(place):
            every, part = every[kept], _mapped(part, lambda a: a[kept])
        self._give(every, part)

    def _symbolic(self, ids: Ids) -> Symbolic:
        nodes = self.graph.nodes_of(ids)
        return Symbolic(self.graph, ids, bool(nodes) and nodes[0].gives_bool)

    def _as_array(self, value: object, shape: tuple[int, ...]) -> Symbolic:
        value = as_symbolic(self.graph, value)
        return Symbolic(self.graph, value.ids.broadcast_to(shape))


def of_segments(values: Symbolic, segments: np.ndarray) -> Symbolic:
    """The value of each term's segment. values : of any shape;  segments : (k,) -> (k,)"""
    flat = values.ids.reshape((values.size,))
    return values.reading(flat.compose(Ids.spaced(segments)))


def dependent(graph: Graph, on: set[int]) -> set[int]:
    """The nodes that depend on some nodes, and those. Raises UnsupportedError as `refuse_unknown` does."""
    active = set(on)
    for node in graph.nodes:
        if any(t.index in active for operand in node.operands for t in graph.nodes_of(operand)):
            active.add(node.index)
            refuse_unknown(node)
    return active


def _mapped(adjoint: Adjoint, function: Callable[[Symbolic], Symbolic]) -> Adjoint:
    """Move the data of an adjoint and of its condition alike."""
    return Adjoint(function(adjoint.value), None if adjoint.where is None else function(adjoint.where))


def _marks(adjoint: Adjoint) -> Symbolic:
    """1 where an adjoint counts, else 0."""
    return apply("where", adjoint.where, 1.0, 0.0)


def _without_broadcast(view: Ids, adjoint: Adjoint) -> tuple[Ids, Adjoint]:
    """Sums over the axes along which a view repeats its ids."""
    repeats = tuple(a for a, n in enumerate(view.shape) if n > 1 and not view.strides[a] and not _varies(view, a))
    if not repeats:
        return view, adjoint
    once = view[tuple(0 if a in repeats else slice(None) for a in range(view.ndim))]
    value = _summed(adjoint.chosen(), repeats)
    where = None if adjoint.where is None else _summed(_marks(adjoint), repeats) != 0.0
    return once, Adjoint(value, where)


def _varies(view: Ids, axis: int) -> bool:
    return view.base is not None and view.base.shape[axis] > 1


def _summed(values: Symbolic, axes: tuple[int, ...]) -> Symbolic:
    if values.ids.base is None and not any(values.ids.strides[a] for a in axes):
        once = values[tuple(0 if a in axes else slice(None) for a in range(values.ndim))]
        return once * float(math.prod(values.shape[a] for a in axes))
    return np.sum(values, axis=axes)  # type: ignore[return-value]


def _in_order(view: Ids, adjoint: Adjoint) -> tuple[Ids, Adjoint]:
    """The axes of an affine view in the order of its ids, without those of length 1."""
    if view.base is not None or not view.ndim:
        return view, adjoint
    axes = sorted(range(view.ndim), key=lambda a: (view.shape[a] == 1, -view.strides[a]))
    kept = tuple(view.shape[a] for a in axes if view.shape[a] != 1) or (1,)
    return (
        view.transpose(tuple(axes)).reshape(kept),
        _mapped(adjoint, lambda a: a.transpose(axes).reshape(kept)),
    )


def _columns(node: Node, local: Ids) -> list[tuple[Column, Column]] | None:
    """The lanes of a node that a view reads, and where in the view; None where it does not read whole lanes."""
    if local.base is not None or len(node.shape) < 2 or not local.ndim or not has_lanes(node.shape):
        return None
    if local.shape[0] != node.shape[0] or local.strides[0] != node.lanes:
        return None
    first = local[0]
    if first.lowest < 0 or first.highest >= node.lanes:
        return None
    lanes = first.to_array().ravel()
    places = list(np.ndindex(*first.shape))
    return [
        (tuple(int(i) for i in np.unravel_index(lane, node.shape[1:])), at)
        for lane, at in zip(lanes, places, strict=True)
    ]


def _collected(node: Node, positions: np.ndarray, values: list[Symbolic]) -> Symbolic:
    """Sums of values by their positions in a node, in its shape; only moved where no two meet."""
    graph = values[0].graph
    ids = Ids.concatenate([v.ids.reshape((v.size,)) for v in values], 0)
    if not has_repeats(positions):
        spread = np.full(node.size, as_symbolic(graph, 0.0).ids.offset, id_dtype(graph.size))
        spread[positions] = ids.to_array()
        return Symbolic(graph, Ids.spaced(spread.reshape(node.shape)))
    order, offsets = sorting(positions.astype(id_dtype(node.size), copy=False), node.size)
    return segment_sum(Symbolic(graph, ids).listed(order), offsets).reshape(node.shape)
