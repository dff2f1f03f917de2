"""Nodes of a graph."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..integers.ids import Ids
from ..integers.segments import Segments
from ..ops import OPS
from .system import System
from .tape import Tape

_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Node:
    """A run of ``size`` scalars with the ids ``first, first + 1, ...``."""

    index: int
    op: str
    operands: tuple[Ids, ...]
    shape: tuple[int, ...]
    first: int
    values: np.ndarray = field(default_factory=lambda: _NOTHING)  # of a constant
    segments: Segments = field(default_factory=lambda: Segments(_NOTHING, _NOTHING))  # of a segment sum's operand
    name: str = ""  # of a variable
    tape: Tape | None = None  # of scalars made one by one
    system: System | None = None  # of a solution
    loop: Any = None  # a `while_loop.WhileLoop`, which runs as often as values decide
    size: int = field(init=False)
    end: int = field(init=False)  # the id after the last
    lanes: int = field(init=False)  # scalars per mesh element: the product of the trailing axes
    is_leaf: bool = field(init=False)
    gives_bool: bool = field(init=False)

    def __post_init__(self) -> None:
        size = math.prod(self.shape)
        # asked for so often that properties would take a twentieth of what a small program takes to prepare
        self.__dict__.update(
            size=size,
            end=self.first + size,
            lanes=math.prod(self.shape[1:]),
            is_leaf=self.op in ("variable", "constant"),
            gives_bool=self.op in OPS and OPS[self.op].gives_bool,
        )

    @property
    def ids(self) -> Ids:
        return Ids.contiguous(self.first, self.shape)

    def places_in(self, ids: np.ndarray) -> np.ndarray:
        """Where some ids (k,) are scalars of this node."""
        return np.flatnonzero((ids >= self.first) & (ids < self.end))
