"""Constants of outputs are written by those who write beside them.

What elements add to starts as zero, but for what is added to the sums, as on the diagonal of a block. One store of a
short row writes both; on their own, the zeros would need a column of places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..graph import Graph
from ..graph.values import gathered
from ..integers.ids import Ids, id_dtype
from ..layout import Place
from . import Group, Root

RIGHT, LEFT = (1, 2, 3), (-1, -2, -3)  # how far beside a value: as far as rows are stored together
DISTANCES = (*RIGHT, *LEFT)
MOST_VALUES = 3  # values of a group, so that those of longer rows remain alike
LEAST_SHARE = 1 / 8  # share of a group's members that are worth a group of their own


def written_beside(groups: list[Group], graph: Graph) -> list[Group]:
    """The groups, in which a constant that members have at the same distance from what they write is theirs, too.

    A group of one value per member is split by where these are. Whoever adds to the constants runs after all that
    write to the output.
    """
    constants = [g for g in groups if _is_constant(g, graph)]
    others = [g for g in groups if g not in constants]
    for constant in constants:
        waiting = _Waiting(constant)
        others = [waiting.written_by(g) for g in others]
        others = [part for g in others for part in waiting.written_by_parts(g)]
        others += waiting.rest()
    return others


def _is_constant(group: Group, graph: Graph) -> bool:
    """Whether a group writes one number to places that do not follow each other."""
    root = group.roots[0]
    if group.size == 1 or len(group.roots) > 1 or [_is_scattered(w) for w in root.writes] != [True]:
        return False
    nodes = graph.nodes_of(root.ids)
    if any(node.op != "constant" for node in nodes):
        return False
    bits = gathered(graph, root.ids, lambda node, places: node.values.ravel()[places]).view(np.int64)
    return bool((bits == bits[0]).all())


def _is_scattered(place: Place) -> bool:
    return not place.adds and place.loop is None and not place.position.is_contiguous()


class _Waiting:
    """The entries of a buffer to which a constant is still to be written."""

    def __init__(self, group: Group):
        self.group, self.place = group, group.roots[0].writes[0]
        self.is_here = np.zeros(self.place.position.highest + 1, bool)
        self.is_here[self.place.position.to_array()] = True

    def written_by(self, group: Group) -> Group:
        """A group whose members write what all of them can.

        Of a value with several places, some members may have one place again in the next (see `REPEATED` of `group`):
        those have taken what is beside it already.
        """
        found: list[tuple[int, int, Place]] = []
        before, distances = None, set(DISTANCES)
        for number, place in enumerate(self._written(group) if len(group.roots) <= MOST_VALUES else ()):
            entries = place.position.to_array()
            is_new = np.ones(len(entries), bool) if before is None else entries != before
            distances = {*self._taken(entries[is_new], {*DISTANCES} if is_new.all() else distances)}
            found += [(distance, number, place) for distance in distances]
            before = entries
        found.sort(key=lambda f: f[:2])  # a place that is repeated comes next to itself
        return self._with(group, [replace(p, position=p.position.shifted(d)) for d, _, p in found])

    def _taken(self, entries: np.ndarray, distances: set[int]) -> Iterator[int]:
        """Take what waits beside all entries, at some distances; gives at which it did."""
        for side in (RIGHT, LEFT):
            for distance in side:
                at = entries + distance
                if distance not in distances or not len(at) or at.min() < 0 or at.max() >= len(self.is_here):
                    break
                if not self.is_here[at].all():
                    break
                self.is_here[at] = False
                yield distance

    def written_by_parts(self, group: Group) -> list[Group]:
        """A group of one value per member, split by where the constant waits."""
        places = self._written(group)
        if [len(root.writes) for root in group.roots] != [1] or not places:
            return [group]
        found = self._beside(places[0].position.to_array())
        numbers, counts = np.unique(found, return_counts=True)
        found[~np.isin(found, numbers[counts >= LEAST_SHARE * group.size])] = 0
        if not found.any():
            return [group]
        parts = [group.of(np.flatnonzero(found == n)) for n in np.unique(found)]
        return [self.written_by(part) for part in parts]

    def _beside(self, entries: np.ndarray) -> np.ndarray:
        """Per entry, bits of the distances at which the constant waits, side by side; each for one entry only."""
        is_here, bits = self.is_here.copy(), np.zeros(len(entries), np.uint8)
        for side in (RIGHT, LEFT):
            reached = np.arange(len(entries))
            for distance in side:
                at = entries[reached] + distance
                inside = (at >= 0) & (at < len(is_here))
                reached, at = reached[inside], at[inside]
                reached, at = reached[is_here[at]], at[is_here[at]]
                is_here[at] = False
                bits[reached] |= 1 << DISTANCES.index(distance)
        return bits

    def _written(self, group: Group) -> list[Place]:
        return [w for root in group.roots for w in root.writes if _is_scattered(w) and w.buffer == self.place.buffer]

    def _with(self, group: Group, writes: list[Place]) -> Group:
        return replace(group, roots=(*group.roots, Root(self._number(group.size), tuple(writes)))) if writes else group

    def _number(self, size: int) -> Ids:
        return Ids((size,), self.group.roots[0].ids.lowest, (0,))

    def rest(self) -> list[Group]:
        """The group of what nobody else writes."""
        left = np.flatnonzero(self.is_here)
        if len(left) == self.group.size or not len(left):
            return [self.group] if len(left) else []
        position = Ids.explicit(left.astype(id_dtype(len(self.is_here)))).canonical()
        root = Root(self._number(len(left)), (replace(self.place, position=position),))
        return [Group((root,), self.group.level, len(left))]
