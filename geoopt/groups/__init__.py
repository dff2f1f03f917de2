"""What `group` gives: the members of each kernel, as columns of ids."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ..cut import Cut
from ..errors import InternalError
from ..integers.ids import Ids
from ..layout import Layout, Place
from .structure import Structure


@dataclass(frozen=True, eq=False)
class Root:
    """One value per member: its id, and its places in memory."""

    ids: Ids
    writes: tuple[Place, ...]

    def of(self, members: Ids) -> Root:
        """Of some members only."""
        return Root(self.ids.compose(members).canonical(), tuple(w.of(members) for w in self.writes))


@dataclass(frozen=True, eq=False)
class Group:
    """Members of one kernel: entry i of every root belongs to member i."""

    roots: tuple[Root, ...]
    level: int
    size: int

    def of(self, members: np.ndarray) -> Group:
        """Some members only."""
        picked = Ids.explicit(members)
        return Group(tuple(r.of(picked) for r in self.roots), self.level, len(members))


@dataclass(frozen=True, eq=False)
class Groups:
    """All groups, in the order of their levels, and where what they leave in memory is."""

    cut: Cut
    groups: tuple[Group, ...]
    layout: Layout
    structure: Structure

    def check(self) -> None:
        self._check_entries()
        self._check_additions()

    def _check_entries(self) -> None:
        """Every entry of the outputs is written once."""
        written = [0] * (self.layout.workspace + 1)
        for group in self.groups:
            for root in group.roots:
                if root.ids.shape != (group.size,):
                    raise InternalError("group", "a root has not one value per member")
                for write in (w for w in root.writes if not w.adds):
                    written[write.buffer] += write.position.size
                for one, other in itertools.pairwise(root.writes):  # places that are repeated
                    if one.buffer == other.buffer and one.loop == other.loop and not one.adds:
                        again = np.count_nonzero(one.position.to_array() == other.position.to_array())
                        written[one.buffer] -= int(again)
        first = len(self.cut.traced.variables)
        for stream in self.cut.streams.values():
            written[first + stream.output] += stream.count
        for output, count in zip(self.cut.traced.outputs, written[first:], strict=False):
            if output.size != count:
                raise InternalError("group", f"an output of {output.size} entries gets {count} values")

    def _check_additions(self) -> None:
        """What others add to is there."""
        places = [(w.buffer, bool(w.adds), g.level) for g in self.groups for r in g.roots for w in r.writes]
        last = {buffer: level for buffer, adds, level in sorted(places) if not adds}
        if any(adds and level <= last.get(buffer, 0) for buffer, adds, level in places):
            raise InternalError("group", "a kernel adds to an output before all of that is written")

    def __str__(self) -> str:
        rows = [f"level {g.level}: {g.size} members, {len(g.roots)} values each" for g in self.groups]
        return "\n".join(rows)
