"""Loops over long arrays do what NumPy does, from few places on and from many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoopt.integers.gathers import (
    FEW,
    SPARSE,
    copies_of,
    first_places,
    has_repeats,
    listed,
    ranked,
    replace_range,
    taken,
)
from geoopt.integers.owners import divided_by_lanes, owner_counts, owners, shifted

COUNTS = (0, 1, 50, FEW, 3 * FEW)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_taken_is_indexing(count, dtype):
    generator = np.random.default_rng(count)
    array = generator.integers(0, 1000, 777).astype(dtype)
    for places in (generator.integers(0, 777, count, dtype=np.int32), generator.integers(0, 777, (count, 2))):
        got = taken(array, places)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, array[places])


@pytest.mark.parametrize("count", [500, 3 * FEW])
@pytest.mark.parametrize("shape", [(1, 1), (300, 1), (1, 7), (300, 7), (300, 1, 3, 1), (1, 7, 1, 2), (300, 7, 3, 2)])
def test_listed_is_an_affine_part_and_a_table(shape, count):
    generator = np.random.default_rng(1)
    whole = (300, 7, 3, 2)[: len(shape)]
    base, places = generator.integers(0, 99, shape), generator.integers(0, np.prod(whole), count)
    at, steps = np.unravel_index(places, whole), (11, -2, 0, 5)[: len(shape)]
    want = 5 + sum(step * i for step, i in zip(steps, at, strict=True)) + np.broadcast_to(base, whole)[at]
    transposed = np.asfortranarray(base)  # any layout
    listed(5, steps, transposed, whole, places, places)
    np.testing.assert_array_equal(places, want)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("first", [0, -70, 10**6])
@pytest.mark.parametrize("step", [1, 3, 2 * SPARSE])
def test_repeats_are_found(count, first, step):
    numbers = first + step * np.random.default_rng(count).permutation(count)
    assert not has_repeats(numbers)
    for at in {1, count // 2, count - 1} & set(range(1, count)):
        again = numbers.copy()
        again[at] = again[0]
        assert has_repeats(again)


@given(seed=st.integers(0, 2**32 - 1), runs=st.integers(1, 300), many=st.booleans())
def test_owners_are_those_of_a_search(seed, runs, many):
    generator = np.random.default_rng(seed)
    lengths = generator.choice([0, 1, 7, 5000], runs)  # some are empty
    firsts = 3 + np.cumsum(lengths) - lengths
    ids = generator.integers(3, firsts[-1] + 100, 2 * FEW if many else 100)
    want = np.searchsorted(firsts, ids, side="right") - 1
    np.testing.assert_array_equal(owners(firsts, ids), want)
    np.testing.assert_array_equal(owner_counts(firsts, ids), np.bincount(want, minlength=runs))
    shifts = generator.integers(0, 1000, runs)
    np.testing.assert_array_equal(shifted(firsts, shifts, ids, np.int32), ids + shifts[want])


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("most", [1, 200, 70_000, 10**9])
def test_ranks_are_positions_among_what_occurs(count, most):
    numbers = np.random.default_rng(count).integers(0, most, (count, 2))
    ranks, occurring = ranked(numbers)
    np.testing.assert_array_equal(occurring, np.unique(numbers))
    np.testing.assert_array_equal(occurring[ranks], numbers)


@pytest.mark.parametrize("count", COUNTS)
def test_numbers_of_a_range_are_replaced_once(count):
    numbers = np.random.default_rng(count).integers(0, 100, count)
    want = np.where((numbers >= 30) & (numbers < 80), numbers // 2, numbers)  # some of which are in the range again
    replace_range(numbers, 30, np.arange(30, 80) // 2)
    np.testing.assert_array_equal(numbers, want)


@given(st.lists(st.integers(0, 20), min_size=1), st.integers(1, 3), st.integers(0, 3))
def test_copies_are_where_a_number_is(among, fewest, more):
    places, counts = np.array(among), np.bincount(among, minlength=21)
    numbers = np.flatnonzero((counts >= fewest) & (counts <= fewest + more))
    got = copies_of(numbers, fewest, fewest + more, counts, places)
    for number, column in zip(numbers, got.T, strict=True):
        own = np.flatnonzero(places == number)
        np.testing.assert_array_equal(column, np.append(own, [own[-1]] * (fewest + more - len(own))))
    all_of_them = copies_of(None, 0, int(counts.max()), counts[counts > 0], np.unique(among, return_inverse=True)[1])
    assert set(all_of_them.ravel()) == set(range(len(among)))


@given(st.lists(st.integers(0, 9), min_size=1))
def test_first_places_are_those_of_unique(numbers):
    ranks, occurring = ranked(np.array(numbers))
    _, want = np.unique(numbers, return_index=True)
    np.testing.assert_array_equal(first_places(ranks, len(occurring)), want)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=6))
def test_elements_and_lanes_are_those_of_a_division(runs):
    """runs : ids between two, elements, lanes"""
    ids, want, first, before, firsts = [], [], 0, 0, []
    for gap, elements, lanes in runs:
        first += gap
        firsts.append(first)
        for i in range(elements * lanes):
            ids.append(first + i)
            want.append((i // lanes, before + i % lanes))
        first, before = first + elements * lanes, before + lanes
    found = divided_by_lanes(firsts, [lanes for *_, lanes in runs], np.array(ids))
    np.testing.assert_array_equal(np.stack(found, axis=1), want)
