"""Stage `group`: split outputs and intermediates by structure and level; find blocks.

Takes: `Cut`.
Gives: `Groups`: per group the members of one kernel, as columns of ids, and where each value is written.
Ensures: members of a group have equal structure and do not depend on each other; every output entry and
every intermediate is written by exactly one of them, which may write it twice (see `REPEATED`).
Paper: expression grouping; blocks (explicit intermediate tagging), found here without tags.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .cut import Cut
from .graph import Node
from .graph.references import has_lanes, lanes
from .groups import Group, Groups, Root
from .groups.blocks import blocks
from .groups.constants import written_beside
from .groups.copies import by_copies, each_once, inverses
from .groups.structure import Structure
from .integers.gathers import taken
from .integers.ids import Ids, id_dtype
from .integers.owners import owners
from .integers.sorting import sorting
from .layout import Home, Layout, Place
from .stages import Context

REPEATED = 0.1  # share of places that may be written twice, so that values in fewer places are no group of their own


def group(cut: Cut, context: Context) -> Groups:
    options = context.options
    placer = _Placing(cut)
    structure = Structure(cut, {index: home.buffer for index, home in placer.homes.items()}, options)
    groups: list[Group] = []
    streamed = cut.streamed
    for node in cut.graph.nodes:
        if node.index not in streamed:
            groups += _groups_of_node(cut, structure, placer, node)
    if options.blocks or cut.graph.blocks:
        groups = blocks(cut, structure, groups)
    if options.has("memory"):
        groups = written_beside(groups, cut.graph)
    groups.sort(key=lambda g: g.level)
    return Groups(cut, tuple(groups), placer.layout(), structure)


class _Placing:
    """Decides the home of each stored node and collects which outputs want which scalars."""

    def __init__(self, cut: Cut):
        self.cut = cut
        first_output = len(cut.traced.variables)
        self.workspace = first_output + len(cut.traced.outputs)
        self.workspace_size = 0
        self.homes: dict[int, Place] = {}
        self.wanted: dict[int, list[tuple[int, Ids, Ids]]] = {}  # node -> (buffer, local ids, positions)
        for i, node in enumerate(cut.traced.variables):
            self.homes[node.index] = Place(i, Ids.contiguous(0, node.shape))
        for i, view in enumerate(cut.traced.outputs):
            self._collect(first_output + i, view)
        for node in cut.graph.nodes:
            if node.index in cut.stored:
                self.homes[node.index] = self._home(node)

    def _collect(self, buffer: int, view: Ids) -> None:
        graph = self.cut.graph
        nodes = graph.nodes_of(view)
        if len(nodes) == 1:
            local = graph.local(nodes[0], _rows(view))
            entry = (buffer, local, Ids.contiguous(0, local.shape))
            self.wanted.setdefault(nodes[0].index, []).append(entry)
            return
        ids = view.to_array().reshape(-1)
        order, offsets = sorting(owners([n.first for n in nodes], ids).astype(ids.dtype, copy=False), len(nodes))
        for node, begin, end in zip(nodes, offsets, offsets[1:], strict=False):
            positions = order[begin:end]
            local = taken(ids, positions) - ids.dtype.type(node.first)
            self.wanted.setdefault(node.index, []).append(
                (buffer, Ids.explicit(local), Ids.explicit(positions).canonical())
            )

    def whole(self, node: Node) -> tuple[list[tuple[int, Ids]], list[tuple[int, Ids, Ids]]]:
        """Wishes for a node split into those for each scalar equally often, as (buffer, positions by scalar) for each
        time, and the others; all of a leaf's that follow each other in the output are others."""
        complete, partial = [], []
        for buffer, local, positions in self.wanted.get(node.index, []):
            by_scalar = [] if node.is_leaf and positions.base is None else inverses(node, local, positions)
            complete += [(buffer, places) for places in by_scalar]
            if not by_scalar:
                partial.append((buffer, local, positions))
        return complete, partial

    def added(self, node: Node) -> list[Place]:
        """Where a node's scalars are added."""
        first = len(self.cut.traced.variables)
        return [
            Place(first + part.output, Ids.spaced(entries.reshape(node.shape)), adds=part.sign)
            for part in self.cut.scatters.get(node.index, ())
            for entries in part.entries
        ]

    def layout(self) -> Layout:
        traced = self.cut.traced
        levels = {**dict.fromkeys((n.index for n in traced.variables), 0), **self.cut.ready}
        homes = [
            Home(node.name or f"n{index}", node.first, node.shape, place, levels[index])
            for index, place in sorted(self.homes.items())
            if (node := self.cut.graph.nodes[index]).size
        ]
        shapes = tuple(n.shape for n in traced.variables), tuple(v.shape for v in traced.outputs)
        return Layout(*shapes, self.workspace_size, tuple(homes))

    def _home(self, node: Node) -> Place:
        complete, _ = self.whole(node)
        if complete:
            return Place(*complete[0])
        position = Ids.contiguous(self.workspace_size, node.shape)
        if node.shape and has_lanes(node.shape):
            # structure of arrays: one contiguous run per lane, so that kernels store whole vectors
            position = replace(
                position, strides=(1, *(node.shape[0] * step for step in Ids.contiguous(0, node.shape[1:]).strides))
            )
        home = Place(self.workspace, position)
        self.workspace_size += node.size
        return home


def _rows(view: Ids) -> Ids:
    """A view as rows (k, lanes) where the entries of its last axis follow each other, else flat."""
    is_listed = view.base is not None and view.base.shape[-1:] != (1,)
    return view.reshape((view.size,) if view.ndim < 2 or is_listed else (-1, view.shape[-1]))


def _groups_of_node(cut: Cut, structure: Structure, placer: _Placing, node: Node) -> list[Group]:
    """The groups that write a node's scalars: as an intermediate, and as entries of outputs."""
    complete, partial = placer.whole(node)
    writes = [Place(buffer, position) for buffer, position in complete]
    is_stored = node.index in cut.stored
    if is_stored and placer.homes[node.index].buffer == placer.workspace:
        writes.append(Place(placer.workspace, placer.homes[node.index].position))
    writes += placer.added(node)
    groups: list[Group] = []
    if writes and node.size:
        level = max(cut.levels[node.index], 1)
        for roots, size in _whole_node(cut, node, writes):
            groups += _split(structure, roots, level, size)
    for buffer, local, positions in partial:
        level = cut.ready[node.index]
        is_read = node.op == "constant" or structure.reads(node, level)
        find = _read if is_read and positions.base is None else functools.partial(_evaluated, structure)
        for roots in find(node, buffer, local, positions) if local.size else ():
            groups += _split(structure, roots, level, roots[0].ids.size)
    return groups


def _read(node: Node, buffer: int, local: Ids, positions: Ids) -> list[list[Root]]:
    """Roots that read what they write to an output, entry by entry: loads that jump are faster than stores that do."""
    flat = node.ids.reshape((node.size,))
    columns = zip(lanes(local), lanes(positions), strict=True)
    return [[Root(flat.compose(c).canonical(), (Place(buffer, p),)) for c, p in columns]]


def _evaluated(structure: Structure, node: Node, buffer: int, local: Ids, positions: Ids) -> Iterator[list[Root]]:
    """Roots that evaluate each scalar once, if it is in few places."""
    local, positions = (view.reshape((local.size,)) for view in (local, positions))
    for members, copies in each_once(node, local, REPEATED if structure.options.has("memory") else 0):
        writes = tuple(Place(buffer, positions.compose(c).canonical()) for c in copies)
        yield [Root(node.ids.reshape((node.size,)).compose(members).canonical(), writes)]


def _whole_node(cut: Cut, node: Node, writes: list[Place]) -> list[tuple[list[Root], int]]:
    """Roots for all scalars of a node; equal scalars are one member written to several places."""
    equals = cut.equals.get(node.index)
    if equals is None:
        views = [lanes(w.position) for w in writes]
        columns = lanes(node.ids)
        roots = [
            Root(c, tuple(replace(w, position=v[i]) for w, v in zip(writes, views, strict=True) if v[i].lowest >= 0))
            for i, c in enumerate(columns)
        ]
        return [([r for r in roots if r.writes], columns[0].size)]
    result = []
    for members, copies in by_copies(equals, node.size):
        places = tuple(w.of(c) for w in writes for c in copies)
        result.append(([Root(node.ids.compose(members).canonical(), places)], members.size))
    return result


def _split(structure: Structure, roots: list[Root], level: int, size: int) -> list[Group]:
    """Split members by the structure of their roots."""
    kinds = [_root_kinds(structure, root, level) for root in roots]
    total = kinds[0] if len(kinds) == 1 else structure.kinds.combined(("member",), kinds)
    whole = Group(tuple(roots), level, size)
    if total.size == 1:
        return [whole]
    groups = []
    order, offsets = sorting(total.astype(id_dtype(size)), int(total.max()) + 1)
    for members in np.split(order, np.unique(offsets[1:-1])):
        if len(members):
            groups.append(whole.of(members))
    return groups


def _root_kinds(structure: Structure, root: Root, level: int) -> np.ndarray:
    nodes = structure.graph.nodes_of(root.ids)
    if len(nodes) == 1 and not nodes[0].is_leaf and not structure.reads(nodes[0], level):
        return structure._within(nodes[0], root.ids, level)
    return structure.of_view(root.ids, level)
