"""Values that outputs list several times: a kernel writes each to a few places, or reads it where it is often."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ..cut import MOST_PLACES
from ..graph import Node
from ..integers.gathers import copies_of, count_into, has_repeats, histogram, places_of, taken
from ..integers.ids import Ids, id_dtype

Copies = tuple[Ids, list[Ids]]  # some scalars of a node, and where their first, second, ... copies are


def inverses(node: Node, local: Ids, positions: Ids) -> list[Ids]:
    """Positions indexed by scalar, of the first, the second, ... time that ``local`` lists it, where it lists every
    scalar of the node equally often, and not too often; else none."""
    if not node.size or local.size % node.size or local.size > MOST_PLACES * node.size:
        return []
    flat, positions = local.reshape((local.size,)), positions.reshape((local.size,))
    if local.size == node.size and flat.is_contiguous() and flat.offset == 0:
        return [positions.reshape(node.shape)]
    (members, copies), *others = by_copies(flat.to_array(), node.size)
    if others or members.size != node.size or not members.is_contiguous():
        return []
    return [Ids.explicit(positions.compose(c).to_array().reshape(node.shape)) for c in copies]


def each_once(node: Node, local: Ids, repeated: float) -> list[Copies]:
    """The scalars of a node that a column lists, each once if it is there few times. repeated : see `by_copies`"""
    is_affine = local.base is None and (local.strides[0] != 0 or local.size == 1)
    if is_affine or not has_repeats(local.to_array()):
        return [(local, [Ids.contiguous(0, local.shape)])]
    return list(by_copies(local.to_array(), node.size, repeated))


def by_copies(values: np.ndarray, bound: int, repeated: float = 0) -> Iterator[Copies]:
    """For numbers of times that values occur: these values, and where their first, second, ... copies are; of those
    that occur less often than others, the last is repeated. Values that occur in more than MOST_PLACES are as many
    members, in one place each, so that no kernel grows with the mesh. repeated : at most so many of all places"""
    counts = np.zeros(bound, values.dtype)
    count_into(values, counts)
    numbers = histogram(counts)
    for fewest, most in _alike(numbers[: MOST_PLACES + 1], repeated * len(values)):
        count = int(numbers[fewest : most + 1].sum())
        at = None if count == bound else places_of(fewest, most, counts, count, values.dtype)
        members = Ids.contiguous(0, (bound,)) if at is None else Ids.explicit(at)
        yield members, [Ids.explicit(c) for c in copies_of(at, fewest, most, counts, values)]
    if len(numbers) > MOST_PLACES + 1:
        at = np.flatnonzero(taken(counts, values) > MOST_PLACES).astype(id_dtype(len(values)))
        yield Ids.explicit(taken(values, at)).canonical(), [Ids.explicit(at).canonical()]


def _alike(numbers: np.ndarray, repeated: float) -> Iterator[tuple[int, int]]:
    """From which to which number of times values occur that are one group.

    numbers : of the values that occur so many times;  repeated : at most so many places for each group
    """
    occurring = [n for n in range(1, len(numbers)) if numbers[n]]
    waiting: list[int] = []
    for n, more in itertools.zip_longest(occurring, occurring[1:]):
        waiting.append(n)
        if not more or sum(numbers[k] * (more - k) for k in waiting) > repeated:
            yield waiting[0], n
            waiting = []
