"""The functions of the operations of `block_ops` in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable

from ...block_ops import side
from ..vectors import Vectors
from .eigen import Eigen
from .projection import Projection


def _projection(factor: float) -> Callable[[str, int, Vectors], list[str]]:
    """Gives the text of a function for lower triangles of so many entries, of its table and of what they need."""
    return lambda name, entries, vectors: Projection(name, side(entries), factor, vectors).text()


ROUTINES: dict[str, Callable[[str, int, Vectors], list[str]]] = {
    "psd": _projection(1.0),
    "abs": _projection(2.0),
    "eigen": lambda name, entries, vectors: Eigen(name, side(entries), vectors).text(),
}
