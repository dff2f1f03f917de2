"""Work divided among cores is all of it, once, and gives the same on any number of them."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp

from geoopt.integers import cores
from geoopt.integers.coordinates import Pairs, from_coordinates, from_pairs
from geoopt.integers.cores import LEAST, PARTS, divided, started
from geoopt.integers.gathers import listed, taken
from geoopt.integers.owners import owner_counts, owners, shifted
from geoopt.integers.patterns import Pattern, product
from geoopt.integers.runs import runs_of
from geoopt.integers.segments import STRIP, Segments

MANY = 20_000


@pytest.fixture(params=[1, 2, 7])
def number(request, monkeypatch):
    """So many cores, for which any work pays."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", str(request.param))
    monkeypatch.setattr(cores, "LEAST", 1)
    return request.param


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_parts_are_everything_once_and_in_order(number, count):
    parts = divided(count, lambda begin, end: list(range(begin, end)))
    assert list(chain.from_iterable(parts)) == list(range(count))
    assert len(parts) == (1 if number == 1 else max(min(PARTS * number, count), 1))


def test_little_work_is_one_part(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "8")
    assert divided(2 * LEAST - 1, lambda *part: part) == [(0, 2 * LEAST - 1)]
    assert divided(10, lambda *part: part, size=2 * LEAST) == [(0, 5), (5, 10)]


def test_errors_are_raised(number):
    def work(begin: int, end: int) -> None:
        raise ValueError(f"{begin} to {end}")

    with pytest.raises(ValueError, match="0 to"):
        divided(100, work)


def test_arrays_do_not_depend_on_it(number):
    generator = np.random.default_rng(3)
    places = generator.integers(0, MANY, MANY)
    array = generator.random(MANY)
    np.testing.assert_array_equal(taken(array, places - 9, 9), array[places])
    i, j = np.divmod(places, 8)
    got = np.empty_like(places)
    listed(3, (2, 5), np.zeros((1, 8), int), (MANY, 8), places, got)
    np.testing.assert_array_equal(got, 3 + 2 * i + 5 * j)
    firsts = np.array([0, 7, MANY // 2])
    want = np.searchsorted(firsts, places, side="right") - 1
    np.testing.assert_array_equal(owners(firsts, places), want)
    np.testing.assert_array_equal(owner_counts(firsts, places), np.bincount(want, minlength=3))
    np.testing.assert_array_equal(
        shifted(firsts, np.array([5, -5, 0]), places, np.int64), places + [5, -5, 0] @ _one_hot(want)
    )


def test_segments_do_not_depend_on_it(number):
    lengths = np.random.default_rng(6).integers(0, 7, MANY)
    offsets = np.append(0, np.cumsum(lengths))
    some = np.random.default_rng(7).integers(0, MANY, MANY)
    for segments in (
        Segments.of_lengths(lengths),
        Segments.between(offsets),
        Segments.between(offsets.astype(np.uint32)),
    ):
        np.testing.assert_array_equal(segments.lengths, lengths)
        np.testing.assert_array_equal(segments.starts, np.append(offsets[:-1:STRIP], offsets[-1]))
        np.testing.assert_array_equal(segments.offsets(), offsets)
        np.testing.assert_array_equal(segments.offsets(99, MANY - 7), offsets[99 : MANY - 6])
        np.testing.assert_array_equal(segments.firsts(some), offsets[some])
        np.testing.assert_array_equal(segments.of_entries, np.repeat(np.arange(MANY), lengths))
        want = np.concatenate([np.arange(offsets[s], offsets[s + 1]) for s in some])
        np.testing.assert_array_equal(segments.entries(some), want)


def _one_hot(numbers: np.ndarray) -> np.ndarray:
    return np.arange(3)[:, None] == numbers


def test_what_is_started_gives_what_it_finds_or_raises():
    assert started(lambda: 7).result() == 7
    with pytest.raises(ZeroDivisionError):
        started(lambda: 1 // 0).result()


def test_patterns_do_not_depend_on_it(number):
    generator = np.random.default_rng(4)
    A, B = (sp.random_array((301, 301), density=0.03, format="csr", rng=generator) for _ in range(2))
    left, right = (Pattern(M.shape, M.indptr, M.indices) for M in (A, B))
    pattern, from_left, from_right, segments = product(left, right)
    C = A @ B
    C.sort_indices()
    np.testing.assert_array_equal(pattern.indptr, C.indptr)
    np.testing.assert_array_equal(pattern.indices, C.indices)
    np.testing.assert_allclose(np.add.reduceat(A.data[from_left] * B.data[from_right], segments.offsets()[:-1]), C.data)

    rows, cols = generator.integers(0, 50, (2, 3000))
    found = from_coordinates(rows, cols, (50, 50))
    want = sp.coo_array((np.ones(3000), (rows, cols)), shape=(50, 50)).tocsr()
    np.testing.assert_array_equal(found.pattern.indices, want.indices)
    np.testing.assert_array_equal(np.diff(found.offsets), want.data)

    numbers = generator.integers(0, 40, (500, 3))
    triangle = from_pairs([Pairs(numbers, np.array([[0, 0], [1, 0], [2, 1]]))], 40)
    ends = numbers[:, [0, 1, 2]].ravel(), numbers[:, [0, 0, 1]].ravel()
    want = sp.coo_array((np.ones(1500), (np.maximum(*ends), np.minimum(*ends))), shape=(40, 40)).tocsr()
    np.testing.assert_array_equal(triangle.pattern.indices, want.indices)
    np.testing.assert_array_equal(np.diff(triangle.offsets), want.data)


def test_runs_do_not_depend_on_it(number):
    generator = np.random.default_rng(5)
    A, B = (sp.random_array((320, 320), density=0.05, format="csr", rng=generator) for _ in range(2))
    _, left, right, segments = product(*(Pattern(M.shape, M.indptr, M.indices) for M in (A, B)))
    members = len(segments) // 16 * 16
    offsets = segments.offsets(0, members)
    columns = [left[: offsets[-1]], right[: offsets[-1]]]
    all_at_once = runs_of(columns, np.diff(offsets), 16, (4,))
    halves = offsets[: members // 32 * 16 + 1], offsets[members // 32 * 16 :]
    apart = [runs_of([c[h[0] : h[-1]] for c in columns], np.diff(h), 16, (4,)) for h in halves]
    np.testing.assert_array_equal(all_at_once.masks, np.concatenate([r.masks for r in apart]))
    for c in range(2):
        np.testing.assert_array_equal(all_at_once.firsts[c], np.concatenate([r.firsts[c] for r in apart]))
    np.testing.assert_array_equal(all_at_once.starts[: members // 32 + 1], apart[0].starts)
