"""`Statistics`: how evenly a mesh is divided, and how much ranks exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .division import Division

SHOWN = 16  # ranks in a table


@dataclass(frozen=True, eq=False)
class Statistics:
    """Of each rank (p,): vertices and elements that it owns, ghosts (vertices of its elements that others own), and
    neighbours (ranks that own these).

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> statistics = mesh.statistics()
    >>> statistics.balance, statistics.halo  # of one rank, which needs nothing of others
    (1.0, 0.0)
    """

    vertices: np.ndarray
    elements: np.ndarray
    ghosts: np.ndarray
    neighbours: np.ndarray

    @property
    def balance(self) -> float:
        """The most elements of a rank, over the mean: 1 is best."""
        return float(self.elements.max() / self.elements.mean())

    @property
    def halo(self) -> float:
        """All ghosts, over all vertices."""
        return float(self.ghosts.sum() / max(self.vertices.sum(), 1))

    def bytes(self, width: int = 3) -> np.ndarray:
        """What each rank receives [bytes] when so many floats at each vertex are brought up to date."""
        return 8 * width * self.ghosts

    def __str__(self) -> str:
        ranks = "1 rank" if len(self.vertices) == 1 else f"{len(self.vertices)} ranks"
        head = f"{ranks}: elements balanced to {self.balance:.3f}, ghosts {100 * self.halo:.2f} %"
        lines = [
            f"{head} of the vertices",
            f"{'rank':>6} {'vertices':>10} {'elements':>10} {'ghosts':>8} {'neighbours':>10}",
        ]
        columns = (self.vertices, self.elements, self.ghosts, self.neighbours)
        for rank, (n, m, ghosts, near) in enumerate(list(zip(*columns, strict=True))[:SHOWN]):
            lines.append(f"{rank:6} {n:10} {m:10} {ghosts:8} {near:10}")
        if len(self.vertices) > SHOWN:
            lines.append(f"   ... and {len(self.vertices) - SHOWN} others")
        return "\n".join(lines)


def of_division(division: Division) -> Statistics:
    """Of a division of a mesh; without MPI."""
    count, elements = division.count, division.elements
    ranks = np.repeat(division.of_elements, elements.shape[1])
    vertices = elements.ravel()
    is_foreign = division.of_vertices[vertices] != ranks
    pairs = np.unique(ranks[is_foreign].astype(np.int64) * len(division.of_vertices) + vertices[is_foreign])
    rank, vertex = np.divmod(pairs, len(division.of_vertices))
    links = np.unique(rank * count + division.of_vertices[vertex])
    counted = [
        np.bincount(a, minlength=count) for a in (division.of_vertices, division.of_elements, rank, links // count)
    ]
    return Statistics(*counted)
