"""What `harvest`, `simplify` and `share` give: kernels, each a template with one column of ids per leaf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import InternalError
from .integers.ids import Ids
from .integers.segments import Segments
from .layout import Layout, Place
from .template import Expression, Template, listing


@dataclass(frozen=True, eq=False)
class Loop:
    """A sum inside a template.

    segments : the terms of each member
    has_runs : whether terms of neighbouring members are worth reading together, see `integers.runs`
    """

    segments: Segments
    has_runs: bool = False


@dataclass(frozen=True, eq=False)
class Leaf:
    """A value read from memory, or a constant that varies.

    ids : one id per member, or per term of ``loop``; constants : likewise, instead of ids
    """

    ids: Ids | None
    constants: np.ndarray | None
    loop: int | None


@dataclass(frozen=True, eq=False)
class Kernel:
    """All members of one group: values ``roots`` of a template, written to ``writes``.

    A root that is written in a loop has one value per term.
    """

    template: Template
    roots: tuple[Expression, ...]
    writes: tuple[tuple[Place, ...], ...]
    leaves: tuple[Leaf, ...]
    loops: tuple[Loop, ...]
    level: int
    size: int

    @property
    def root_loops(self) -> list[int | None]:
        """Per root the loop in which it is written."""
        return [places[0].loop for places in self.writes]

    @property
    def has_runs(self) -> bool:
        """Whether terms of any of its loops are read by runs."""
        return any(loop.has_runs for loop in self.loops)

    def __str__(self) -> str:
        return f"level {self.level}, {self.size} members\n" + listing(list(self.roots))


@dataclass(frozen=True, eq=False)
class Kernels:
    """The kernels of a program in a valid order, and where what they read and write is. What they were made of, the
    graph, is not kept: it is large."""

    layout: Layout
    kernels: tuple[Kernel, ...]

    def check(self) -> None:
        """Every leaf has one entry per member or per term."""
        for k in self.kernels:
            for leaf in k.leaves:
                expected = k.size if leaf.loop is None else k.loops[leaf.loop].segments.total
                entries = leaf.ids.size if leaf.ids is not None else leaf.constants.size  # type: ignore[union-attr]
                if entries != expected:
                    raise InternalError("harvest", f"a leaf has {entries} entries, its kernel {expected}")

    def __str__(self) -> str:
        return "\n\n".join(f"kernel {i}: {k}" for i, k in enumerate(self.kernels))
