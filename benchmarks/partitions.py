"""What a division of a mesh among ranks costs, counted: ``python -m benchmarks.partitions`` counts a large mesh's.

The table is written to ``results/partitions.json``, so that the cost model runs without METIS and without hours.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from geoopt import meshes
from geoopt.distributed.division import Division, divided
from geoopt.output import write_whole

VERTICES = 10_000_000
COUNTS = (1, 2, 4, 8, 16, 32, 64, 160, 256, 512, 1024, 2048, 4096)
MACHINE = 16  # ranks of one machine: successive parts
RINGS = 2
RECORD = Path(__file__).parent / "results" / "partitions.json"
Pairs = np.ndarray  # (p, 2) ranks and vertices, or ranks and elements, sorted, each once


def statistics(division: Division, machine: int = MACHINE, rings: int = RINGS) -> dict[str, Any]:
    """Counts of a division, of the rank (or machine) that has most, and the mean or the sum of all.

    machine : how many successive ranks one machine has
    Gives "parts", "vertices" and "elements" that are the rank's own, "remote": entries of a matrix of vertices and
    their neighbours that a rank has for rows of others, and for each number of rings "halo", see `_halo`.
    """
    count = division.count
    elements, vertices = (np.bincount(a, minlength=count) for a in (division.of_elements, division.of_vertices))
    remote = np.bincount(remote_entries(division), minlength=count)
    near = _near(division, rings)
    ghosts, inside = _ghosts(division, np.arange(len(division.elements)), division.of_elements), np.empty((0, 2), int)
    halos = [_halo(division, ghosts, inside, machine)]
    frontier = _shared(division)
    for _ in range(rings):
        around = _expanded(frontier, near)
        is_new = division.of_elements[around[:, 1]] != around[:, 0]
        new = _without(around[is_new], inside)
        inside = _unique(np.concatenate([inside, new]))
        corners = np.stack([np.repeat(new[:, 0], division.elements.shape[1]), division.elements[new[:, 1]].ravel()], 1)
        frontier = _unique(corners)
        ghosts = _unique(np.concatenate([ghosts, _ghosts(division, new[:, 1], new[:, 0])]))
        halos.append(_halo(division, ghosts, inside, machine))
    return {
        "parts": count,
        "vertices": _most_and_mean(vertices),
        "elements": _most_and_mean(elements),
        "remote": _most_and_mean(remote),
        "halo": halos,
    }


def _halo(division: Division, ghosts: Pairs, inside: Pairs, machine: int) -> dict[str, Any]:
    """Of a rank's elements and some rings around them: "added" elements of others, "ghosts": vertices of others,
    "neighbours": the ranks that these belong to, "sent": copies of its vertices that others have, "abroad" and
    "neighbours_abroad": ghosts and neighbours of other machines, of a rank, "machine": ghosts of a whole machine."""
    count = division.count
    owners = division.of_vertices[ghosts[:, 1]]
    messages = _unique(np.stack([ghosts[:, 0], owners], axis=1))
    is_abroad = ghosts[:, 0] // machine != owners // machine
    goes_abroad = messages[:, 0] // machine != messages[:, 1] // machine
    machines = -(-count // machine)
    return {
        "added": _most_and_mean(np.bincount(inside[:, 0], minlength=count)),
        "ghosts": _most_and_mean(np.bincount(ghosts[:, 0], minlength=count)),
        "sent": _most_and_mean(np.bincount(owners, minlength=count)),
        "neighbours": _most_and_mean(np.bincount(messages[:, 0], minlength=count)),
        "abroad": _most_and_mean(np.bincount(ghosts[is_abroad, 0], minlength=count)),
        "neighbours_abroad": _most_and_mean(np.bincount(messages[goes_abroad, 0], minlength=count)),
        "machine": _most_and_mean(np.bincount(ghosts[is_abroad, 0] // machine, minlength=machines)),
    }


def remote_entries(division: Division) -> np.ndarray:
    """Of each entry (i, j) of vertices of one element, or i = j, that a rank has where it does not own i, the rank."""
    elements, n = division.elements, len(division.of_vertices)
    is_foreign = division.of_vertices[elements] != division.of_elements[:, None]
    some = np.flatnonzero(is_foreign.any(axis=1))
    found = []
    for i in range(elements.shape[1]):
        here = some[is_foreign[some, i]]
        rows, ranks = elements[here, i].astype(np.int64), division.of_elements[here].astype(np.int64)
        found += [np.stack([ranks * n + rows, elements[here, j]], axis=1) for j in range(elements.shape[1])]
    return _unique(np.concatenate(found))[:, 0] // n


def _ghosts(division: Division, elements: np.ndarray, ranks: np.ndarray) -> Pairs:
    """The corners of elements that ranks have but do not own."""
    corners = division.elements[elements]
    is_foreign = division.of_vertices[corners] != ranks[:, None]
    of_corners = np.repeat(ranks, is_foreign.sum(axis=1))
    return _unique(np.stack([of_corners.astype(np.int64), corners[is_foreign].astype(np.int64)], axis=1))


def _shared(division: Division) -> Pairs:
    """The vertices of each rank's elements that have elements of others, too."""
    corners, ranks = division.elements, division.of_elements
    is_shared = np.zeros(len(division.of_vertices), bool)
    is_shared[corners[division.of_vertices[corners] != ranks[:, None]]] = True
    among = is_shared[corners]
    of_corners = np.repeat(ranks, among.sum(axis=1)).astype(np.int64)
    return _unique(np.stack([of_corners, corners[among].astype(np.int64)], axis=1))


def _near(division: Division, rings: int) -> sp.csr_array:
    """Of vertices that rings can reach, the elements around them; of others none."""
    elements = division.elements
    is_near = np.zeros(len(division.of_vertices), bool)
    is_near[_shared(division)[:, 1]] = True
    for _ in range(rings):
        chosen = np.flatnonzero(is_near[elements].any(axis=1))
        is_near[elements[chosen]] = True
    chosen = np.flatnonzero(is_near[elements].any(axis=1))
    at = np.repeat(chosen, elements.shape[1])
    shape = len(division.of_vertices), len(elements)
    return sp.csr_array((np.ones(len(at), bool), (elements[chosen].ravel(), at)), shape=shape)


def _expanded(frontier: Pairs, around: sp.csr_array) -> Pairs:
    """The elements around vertices, each with the rank that asks."""
    rows = around[frontier[:, 1]]
    return _unique(np.stack([np.repeat(frontier[:, 0], np.diff(rows.indptr)), rows.indices], axis=1))


def _unique(pairs: Pairs) -> Pairs:
    """Sorted, each once."""
    pairs = pairs.astype(np.int64)
    width = int(pairs[:, 1].max(initial=0)) + 1
    keys = np.unique(pairs[:, 0] * width + pairs[:, 1])
    return np.stack(np.divmod(keys, width), axis=1)


def _without(pairs: Pairs, others: Pairs) -> Pairs:
    width = int(max(pairs[:, 1].max(initial=0), others[:, 1].max(initial=0))) + 1
    keys, known = (p[:, 0] * width + p[:, 1] for p in (pairs, others))
    return pairs[~np.isin(keys, known)]


def _most_and_mean(counts: np.ndarray) -> list[float]:
    return [int(counts.max()), round(float(counts.mean()), 2)]


def main() -> None:
    V, F = meshes.bumpy(VERTICES)
    n, rows = len(V), []
    del V
    for count in COUNTS:
        start = time.perf_counter()
        division = divided(F, n, count)
        taken = time.perf_counter() - start
        rows.append(statistics(division) | {"partition_seconds": round(taken, 1)})
        print(
            f"{count} parts in {taken:.0f} s, counted in {time.perf_counter() - start - taken:.0f} s", file=sys.stderr
        )
    save(n, len(F), rows)


def save(vertices: int, elements: int, rows: list[dict[str, Any]]) -> None:
    head = {"mesh": "bumpy", "vertices": vertices, "elements": elements, "machine": MACHINE}
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{json.dumps(head)[:-1]}, "divisions": [\n{lines}\n]}}\n'
    write_whole(RECORD, lambda file: file.write(text.encode()))


if __name__ == "__main__":
    main()
