"""Rewrites of the graph before it is cut: what reads one element only is a value of that element.

A product of matrices such as Gᵀ D G multiplies in the order of its entries, but most of its terms read values of one
element each. As values of that element they are evaluated where these are, once for all that are equal, and what one
element adds to an entry is added up there (see `local_sums`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..block_ops import BLOCK_OPS
from ..graph import Graph, Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import elements_and_lanes, is_regular, lane_ids, lanes, reachable
from ..integers.gathers import first_places, has_repeats, histogram, ranked
from ..integers.ids import Ids, id_dtype
from ..integers.spacing import evenly
from ..ops import OPS

MOST_VALUES = 256  # of one element
MOST_KEYS = 1 << 16  # combinations of what the operands may read of one element
MOST_NUMBERS = 16  # different ones in a column of constants, each of which makes another value
SAMPLE = 256  # scalars of a node that are looked at before all are


def with_values_by_element(traced: Traced) -> Traced:
    """The same program; nodes whose scalars read one element each have the elements in front."""
    live = reachable(traced)
    return _ByElement(traced).rebuilt(live) if any(_counts(traced.graph, n, n.operands) for n in live) else traced


@dataclass(frozen=True, eq=False)
class _Operand:
    """What one operand reads, scalar by scalar.

    ids : (k,), none where the keys stand for values
    keys : (k,) which value of its element, or which number; None where it may be anything
    elements : (k,) which element; None where it reads values of none
    targets : the nodes and lanes that the keys stand for; none for numbers
    """

    ids: np.ndarray
    keys: np.ndarray | None = None
    elements: np.ndarray | None = None
    targets: tuple[tuple[Node, int], ...] = ()

    def at(self, examples: np.ndarray) -> _Operand:
        """Of some scalars only, if the keys tell all; as many as there are scalars, there are of few things."""
        if self.keys is None:
            return self
        ids = self.ids[examples] if len(self.ids) else self.ids
        return replace(self, ids=ids, keys=self.keys[examples], elements=None)


@dataclass(frozen=True, eq=False)
class _Values:
    """Scalars as values of elements.

    count : of elements;  elements : (k,) of each scalar;  kind_of : (k,) which of its element's values each is
    examples : for each kind a scalar
    """

    count: int
    elements: np.ndarray
    kind_of: np.ndarray
    examples: np.ndarray

    def column(self, operand: _Operand, kinds: np.ndarray) -> Ids:
        """What an operand, at the examples, reads for some kinds of all elements, (count, kinds)."""
        if operand.keys is None:
            at = np.full(len(self.examples), -1)
            at[kinds] = np.arange(len(kinds))
            lanes = at[self.kind_of]
            mine = slice(None) if len(kinds) == len(self.examples) else lanes >= 0
            ids = np.full((self.count, len(kinds)), operand.ids[0], operand.ids.dtype)
            ids[self.elements[mine], lanes[mine]] = operand.ids[mine]
            return Ids.spaced(ids)
        if not operand.targets:
            return Ids.explicit(operand.ids[kinds][None]).broadcast_to((self.count, len(kinds)))
        read = [operand.targets[key] for key in operand.keys[kinds]]
        target = read[0][0]
        return Ids.contiguous(target.first, (self.count, target.lanes))[:, np.array([lane for _, lane in read])]

    def alike(self, operands: list[_Operand]) -> list[np.ndarray]:
        """The kinds that read values of the same nodes. operands : at the examples"""
        known = [(o.keys, o.targets) for o in operands if o.keys is not None and o.targets]
        read = [tuple(targets[keys[kind]][0].index for keys, targets in known) for kind in range(len(self.examples))]
        return [np.array([k for k, nodes in enumerate(read) if nodes == these]) for these in dict.fromkeys(read)]


class _ByElement(Rebuild):
    """The new graph, in which some nodes are values of elements."""

    def emit(self, node: Node, operands: tuple[Ids, ...]) -> None:
        for count in _counts(self.graph, node, operands):
            ids = self._moved_by_element(node.op, [o.reshape((node.size,)) for o in operands], count)
            if ids is not None:
                self.keep_each(node, ids)
                return
        super().emit(node, operands)

    def _moved_by_element(self, op: str, views: list[Ids], count: int) -> np.ndarray | None:
        """The ids of some scalars as values of ``count`` elements; None where elements have too different ones."""
        operands = _operands(self.graph, views, count)
        values = _values(operands, count)
        if values is None:
            return None
        operands = [o.at(values.examples) for o in operands]
        firsts, steps = np.empty(len(values.examples), np.int64), np.empty(len(values.examples), np.int64)
        for kinds in values.alike(operands):
            node = self.graph.apply(op, tuple(values.column(o, kinds) for o in operands))
            firsts[kinds], steps[kinds] = node.first + np.arange(len(kinds)), len(kinds)
        return lane_ids(firsts, steps, values.elements, values.kind_of)


def _counts(graph: Graph, node: Node, operands: tuple[Ids, ...]) -> list[int]:
    """The numbers of elements one of which each scalar may read, as far as some tell, largest first; none where the
    node is by element as it is."""
    found = set()
    for view in operands if node.op in OPS and node.size > 1 else ():
        count = _count(graph.nodes_of(view))
        if count and any(is_regular(column, target) for column in lanes(view) for target in graph.nodes_of(column)):
            return []
        found.add(count)
    flat = [o.reshape((node.size,)) for o in operands] if found - {0} else []
    return [count for count in sorted(found - {0}, reverse=True) if _may_agree(graph, flat, count)]


def _count(nodes: list[Node]) -> int:
    """The number of elements whose values some nodes are; 0 where that is not clear."""
    counts = {n.shape[0] if n.shape and (n.op in OPS or n.op in BLOCK_OPS) else 0 for n in nodes}
    count = counts.pop() if len(counts) == 1 else 0
    return count if count > 1 else 0


def _operands(graph: Graph, views: list[Ids], count: int) -> list[_Operand]:
    """What some operands read; those that read the same elements share these."""
    found: list[_Operand] = []
    for view in views:
        operand = _operand(graph, view, count)
        before = next((o.elements for o in found if o.elements is not None), None)
        if before is not None and operand.elements is not None and np.array_equal(before, operand.elements):
            operand = replace(operand, elements=before)
        found.append(operand)
    return found


def _operand(graph: Graph, view: Ids, count: int) -> _Operand:
    ids, nodes = view.to_array(), graph.nodes_of(view)
    if _is_one(view):
        return _Operand(ids, np.zeros(len(ids), np.int32))
    if all(n.op == "constant" for n in nodes):
        return _numbers(ids, nodes)
    if _count(nodes) != count:
        return _Operand(ids)
    elements, keys = elements_and_lanes(nodes, ids)
    return _Operand(ids[:0].copy(), keys, elements, tuple((n, lane) for n in nodes for lane in range(n.lanes)))


def _is_one(view: Ids) -> bool:
    """Whether a view reads the same scalar everywhere."""
    return view.base is None and not any(view.strides)


def _numbers(ids: np.ndarray, nodes: list[Node]) -> _Operand:
    """Constants, by their bits."""
    bits = np.empty(len(ids), np.int64)
    for node in nodes:
        at = node.places_in(ids)
        bits[at] = node.values.view(np.int64).ravel()[ids[at] - node.first]
    known = np.unique(bits[:: max(len(bits) // SAMPLE, 1)])
    if len(known) > MOST_NUMBERS:
        return _Operand(ids)
    keys = np.minimum(np.searchsorted(known, bits), len(known) - 1).astype(np.int32)
    return _Operand(ids, keys) if np.array_equal(known[keys], bits) else _Operand(ids)


def _agreed(operands: list[_Operand]) -> np.ndarray | None:
    """The elements that all operands read which read any; None where these differ."""
    found = [o.elements for o in operands if o.elements is not None]
    return found[0] if found and all(other is found[0] for other in found[1:]) else None


def _may_agree(graph: Graph, views: list[Ids], count: int) -> bool:
    """Whether some scalars read one element each, and may be several values of it."""
    some = Ids.explicit(evenly(views[0].size, SAMPLE))
    operands = _operands(graph, [v.compose(some) for v in views], count)
    have_several = [
        len(o.targets) > 1 or (o.keys is not None and not o.targets and not _is_one(v))
        for o, v in zip(operands, views, strict=True)
    ]
    return any(have_several) and _agreed(operands) is not None


def _values(operands: list[_Operand], count: int) -> _Values | None:
    """Scalars as values of elements; None unless each reads one element and most elements have them all."""
    elements = _agreed(operands)
    known = [o.keys for o in operands if o.keys is not None]
    sizes = [int(k.max()) + 1 for k in known]
    if elements is None or math.prod(sizes) > MOST_KEYS:
        return None
    keys = known[0]
    for size, more in zip(sizes[1:], known[1:], strict=True):
        keys = keys * np.int32(size) + more
    kind_of, occurring = ranked(keys)
    is_too_few = 2 * histogram(kind_of).min() < count
    if is_too_few or not 1 < len(occurring) <= MOST_VALUES or len(occurring) * count > 2 * len(keys):
        return None
    if len(known) < len(operands):
        places = elements.astype(id_dtype(count * len(occurring))) * len(occurring) + kind_of
        if has_repeats(places):  # what the others read makes more values of these
            return None
    return _Values(count, elements, kind_of, first_places(kind_of, len(occurring)))
