"""Segments against NumPy, from few on and from many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoopt.integers.gathers import FEW
from geoopt.integers.segments import STRIP, Segments, first_of, ranges

COUNTS = (0, 1, STRIP, STRIP + 1, 50, FEW, 3 * FEW)


def _lengths(count: int, longest: int) -> np.ndarray:
    lengths = np.random.default_rng(count).integers(0, longest + 1, count)
    lengths[:1] = longest
    return lengths


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("longest", "dtype"), [(63, np.int8), (64, np.int16), (40_000, np.int32)])
def test_segments_take_few_bytes(count, longest, dtype):
    lengths = _lengths(count, longest)
    offsets = np.append(0, np.cumsum(lengths))
    for segments in (Segments.of_lengths(lengths), Segments.between(offsets)):
        got = segments.lengths
        assert got.dtype == (dtype if count else np.int8) and (2 * got >= got).all()
        np.testing.assert_array_equal(got, lengths)
        np.testing.assert_array_equal(segments.counts, lengths)
        assert segments.counts.dtype.kind == "u" and segments.starts.dtype == np.int32
        np.testing.assert_array_equal(segments.starts, np.append(offsets[:-1:STRIP], offsets[-1]))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("begin", [0, STRIP, 7, 10_011])
def test_segments_are_where_their_offsets_say(count, begin):
    segments = Segments.of_lengths(_lengths(count, 5))
    offsets = np.append(0, np.cumsum(segments.lengths, dtype=np.int64))
    np.testing.assert_array_equal(segments.offsets(), offsets)
    np.testing.assert_array_equal(segments.of_entries, np.repeat(np.arange(count), segments.lengths))
    if begin < count:
        for end in (begin + 3, count, count + 100):
            np.testing.assert_array_equal(segments.offsets(begin, end), offsets[begin : end + 1])
        some = np.random.default_rng(2).integers(begin, count, 300)
        np.testing.assert_array_equal(segments.firsts(some), offsets[some])
        assert [first_of(segments.lengths, segments.starts, s) for s in some[:50]] == offsets[some[:50]].tolist()
        want = np.concatenate([np.arange(offsets[s], offsets[s + 1]) for s in some])
        np.testing.assert_array_equal(segments.entries(some), want)


def test_long_lists_have_places_of_64_bits():
    segments = Segments.of_lengths(np.full(40, 2**30))
    assert segments.total == 40 * 2**30 and segments.starts.dtype == np.int64
    np.testing.assert_array_equal(segments.offsets(), np.arange(41) * 2**30)


@given(*(st.lists(st.sampled_from([0, 1, 2, 63, 64, 16_191]), max_size=3) for _ in range(2)))
def test_equal_segments_have_equal_keys(one, other):
    keys = [Segments.of_lengths(np.array(lengths, np.int64)).key for lengths in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
    assert keys[0] == Segments.between(np.append(0, np.cumsum(one, dtype=np.int64))).key


def test_ranges_follow_each_other():
    firsts, counts = np.array([5, 100, 7], np.int32), np.array([2, 0, 3])
    np.testing.assert_array_equal(ranges(firsts, counts), [5, 6, 7, 8, 9])
