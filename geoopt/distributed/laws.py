"""How each part of a function's result can be distributed: found by imitating ranks on a small patch of the mesh.

A result is distributed in one of three ways:

- added: each rank evaluates the function on its own elements, and what they have in common is added. So are sums over
  elements: assembled matrices, gradients of energies, energies.
- owned: each rank evaluates it on its own elements and some rings around them, and keeps its own rows. So is what
  depends on neighbours otherwise: normals, rotations that fit the edges around a vertex, products of matrices.
- differences: a number changes, when a rank's elements are added to those of all ranks before it, by what the function
  is on the elements around it with them, less what it is there without them. So are energies of hinges.

What a rank's share must be is known on the patch, where the whole can be evaluated, too: the first way that gives its
values is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import GeooptError, UnsupportedError
from .fields import Piece
from .leaves import Leaf, leaf
from .patch import Patch

SAME = 1e-9  # of a row's largest entry, and a tenth of it of the largest of all, is the same


@dataclass(frozen=True, order=True)
class Way:
    """How a part of a result is distributed, and by how many rings of elements around a rank's own."""

    kind: str
    rings: int = 0

    def __str__(self) -> str:
        if not self.rings:
            return "added over elements"
        rings = "1 ring" if self.rings == 1 else f"{self.rings} rings"
        return f"rows from {rings} around" if self.kind == OWNED else f"differences with {rings} around"


ADDED, OWNED, DIFFERENCES = "added", "owned", "differences"


@dataclass(eq=False)
class Trial:
    """Values of a function on pieces of a patch.

    evaluate : gives the parts of the result on a piece, by their names
    """

    patch: Patch
    evaluate: Callable[[Piece], dict[str, Any]]
    rings: int
    _found: dict[Any, dict[str, Any] | GeooptError] = field(default_factory=dict)

    def on(self, key: Any, piece: Piece) -> dict[str, Any]:
        """The values on a piece; what was raised there is raised again."""
        if key not in self._found:
            try:
                # without elements there is nothing
                self._found[key] = self.evaluate(piece) if len(piece.places) else {}
            except GeooptError as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, GeooptError):
            raise found
        return found

    def whole(self) -> dict[str, Any]:
        return self.on("whole", self.patch.whole())

    def around(self, rank: int, rings: int) -> tuple[Piece, dict[str, Any]]:
        piece = self.patch.around(rank, rings)
        return piece, self.on((rank, rings), piece)


def ways(patch: Patch, evaluate: Callable[[Piece], dict[str, Any]], rings: int, label: str) -> list[tuple[Leaf, Way]]:
    """Of each part of a function's result, what it is and the first way that holds on the patch, with few rings.

    label : what messages call the function
    """
    trial = Trial(patch, evaluate, rings)
    found = []
    for name, value in trial.whole().items():
        _check_finite(name, value, label)
        found.append(_way(trial, name, value, label))
    return found


def _check_finite(name: str, value: Any, label: str) -> None:
    bad = ~np.isfinite(value.data if sp.issparse(value) else value)
    if np.issubdtype(bad.dtype, bool) and bad.any():
        what = f"{label}: result{name} is not finite for the values that were given"
        raise UnsupportedError(what, "give values for which it is, such as those it will be called with")


def _way(trial: Trial, name: str, whole: Any, label: str) -> tuple[Leaf, Way]:
    """The first way that holds. Rows of a vertex may lie side by side, or stacked."""
    reason: GeooptError | None = None
    for is_stacked in (False, True):
        for way in _candidates(trial.rings, np.ndim(whole) == 0 and not sp.issparse(whole)):
            try:
                kind = _leaf(trial, name, whole, is_stacked, way.rings)
                if _is_same(
                    kind, _imitated(trial, kind, way), kind.placed(whole, trial.patch.whole(), trial.patch.counts)
                ):
                    return kind, way
            except UnsupportedError:
                raise
            except GeooptError as error:  # the function does not take such pieces
                reason = error
    what = f"{label}: result{name} depends at a vertex on more than {trial.rings} rings of elements around it"
    raise UnsupportedError(what, "take norms, means and totals out of the function, or give more rings=") from reason


def _candidates(rings: int, is_number: bool) -> list[Way]:
    others = DIFFERENCES if is_number else OWNED
    return [Way(ADDED), *(Way(others, k) for k in range(1, rings + 1))]


def _leaf(trial: Trial, name: str, whole: Any, is_stacked: bool, rings: int) -> Leaf:
    pieces, values = [trial.patch.whole()], [whole]
    for rank in range(trial.patch.division.count):
        piece, found = trial.around(rank, rings)
        if name in found:
            pieces.append(piece)
            values.append(found[name])
    return leaf(name, pieces, values, is_stacked)


def _imitated(trial: Trial, kind: Leaf, way: Way) -> Any:
    """What the ranks would have together."""
    patch = trial.patch
    total: Any = 0.0
    for rank in range(patch.division.count):
        if way.kind == DIFFERENCES:
            for sign, piece in zip((1, -1), patch.differences(rank, way.rings), strict=True):
                found = trial.on((rank, way.rings, sign), piece)
                total = total + sign * found.get(kind.name, 0.0)
            continue
        piece, found = trial.around(rank, way.rings)
        if kind.name in found:
            share = kind.placed(found[kind.name], piece, patch.counts)
            total = total + (_rows_of(share, kind, patch, rank) if way.kind == OWNED else share)
    return total


def _rows_of(share: Any, kind: Leaf, patch: Patch, rank: int) -> Any:
    """The rows that a rank owns; the others are zero."""
    assert kind.rows is not None
    is_own = np.repeat(patch.owners(kind.rows.at) == rank, kind.rows.each)
    if sp.issparse(share):
        return sp.diags_array(is_own.astype(float)) @ share
    return np.where(is_own.reshape(-1, *[1] * (share.ndim - 1)), share, 0.0)


def _is_same(kind: Leaf, found: Any, wanted: Any) -> bool:
    gap = abs(found - wanted)
    if kind.rows is None:
        return bool(gap <= SAME * abs(wanted))
    size = abs(wanted)
    if kind.columns is not None:
        rows, gap = size.max(axis=1).toarray().ravel(), gap.max(axis=1).toarray().ravel()
    else:
        rows, gap = (a.reshape(len(a), -1).max(axis=1) for a in (size, gap))
    return bool((gap <= SAME * (rows + 0.1 * rows.max(initial=0.0))).all())
