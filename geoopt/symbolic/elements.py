"""Which axis of an array counts mesh elements: nodes have it in front, wherever the author's arrays have it.

Corners stacked as (3, m), coordinates as (3, n) and arrays of the corners one after another, (3 m,), then share an
element's values as (m, 3) does.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..graph import Graph
from ..integers.ids import Ids

MOST_PARTS = 256  # along a first axis that does not count elements
FEW = 16  # an axis so many times as long as another counts elements sooner


@dataclass(frozen=True)
class Arrangement:
    """The first axis in ``parts``, then the axis ``elements`` in front."""

    shape: tuple[int, ...]
    parts: int
    elements: int

    @property
    def _split(self) -> tuple[int, ...]:
        return self.shape if self.parts == 1 else (self.parts, self.shape[0] // self.parts, *self.shape[1:])

    @property
    def _order(self) -> tuple[int, ...]:
        return (self.elements, *(a for a in range(len(self._split)) if a != self.elements))

    def of(self, view: Ids) -> Ids:
        """A view of the author's shape, elements first."""
        return view.reshape(self._split).transpose(self._order)

    def undone(self, view: Ids) -> Ids:
        """A view with elements first, in the author's shape."""
        order = self._order
        return view.transpose(tuple(order.index(a) for a in range(len(order)))).reshape(self.shape)


def arrangement(graph: Graph, shape: tuple[int, ...], operands: tuple[Ids, ...]) -> Arrangement:
    """How to arrange a result of elementwise arithmetic: as its operands are, if these agree."""
    as_it_is = Arrangement(shape, 1, 0)
    if not shape or not shape[0]:
        return as_it_is
    found = {a for a in (_arranged(graph, o) for o in operands) if a is not None}
    if found:
        return found.pop() if len(found) == 1 else as_it_is
    longest = max(range(len(shape)), key=lambda axis: shape[axis])
    is_first = shape[longest] < FEW * shape[0] or shape[0] > MOST_PARTS
    return as_it_is if is_first else Arrangement(shape, 1, longest)


def _arranged(graph: Graph, view: Ids) -> Arrangement | None:
    """How a view reads the elements of a node in order; None where it does not, reads what is given, or has many more
    along another axis."""
    first = view.offset if view.base is None else view.offset + int(view.base.flat[0])
    node = graph.node_of(first)
    if node.is_leaf or not node.shape or node.shape[0] < 2:
        return None
    count = node.shape[0]
    if FEW * count <= max(view.shape):
        return None
    for axis, length in enumerate(view.shape):
        if length == count and view.step(axis) == node.lanes:
            return Arrangement(view.shape, 1, axis)
    parts, rest = divmod(view.shape[0], count)
    if rest or not 1 < parts <= MOST_PARTS:
        return None
    split = view.reshape((parts, count, *view.shape[1:]))
    return Arrangement(view.shape, parts, 1) if split.step(1) == node.lanes else None
