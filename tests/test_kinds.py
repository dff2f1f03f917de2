"""Kinds: equal parts, equal number, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoopt.integers.gathers import FEW
from geoopt.integers.kinds import Kinds


def _agree(found: np.ndarray, parts: list[np.ndarray], is_commutative: bool) -> None:
    """Elements have one number where their parts are the same, and two elsewhere."""
    shape = np.broadcast_shapes(*(p.shape for p in parts))
    columns = np.stack([np.broadcast_to(p, shape).ravel() for p in parts], axis=1).tolist()
    wanted = [tuple(sorted(c)) if is_commutative else tuple(c) for c in columns]
    numbers = np.broadcast_to(found, shape).ravel().tolist()
    assert len(set(zip(wanted, numbers, strict=True))) == len(set(wanted)) == len(set(numbers))


PARTS = st.lists(st.lists(st.integers(-1, 6), min_size=5, max_size=5), min_size=1, max_size=4)


@given(PARTS, st.booleans(), st.sampled_from([1, 1000, 10**9]))
def test_combinations_that_differ_have_different_numbers(parts, is_commutative, scale):
    arrays = [np.array(p) * scale for p in parts]
    _agree(Kinds().combined(("op",), arrays, is_commutative), arrays, is_commutative)


@pytest.mark.parametrize("count", [FEW - 1, 4 * FEW])
@pytest.mark.parametrize("most", [2, 300, 70_000])
def test_many_elements(count, most):
    generator = np.random.default_rng(count + most)
    parts = [generator.integers(0, most, count) for _ in range(2)]
    parts[1] = np.where(parts[1] % 2, parts[0], parts[1])
    found = Kinds().combined(("op",), parts)
    _agree(found, parts, False)
    assert found.dtype == np.min_scalar_type(int(found.max()))


@pytest.mark.parametrize("span", [255, 256, 257, 65_535, 65_536, 65_537])
@pytest.mark.parametrize("before", [[7], [0, 1], [-1, 300]])
def test_spans_at_the_ends_of_types(span, before):
    parts = [np.resize(before, span), np.arange(span) - 1]
    _agree(Kinds().combined(("op",), parts), parts, False)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_parts_that_fill_their_type(dtype):
    ends = np.iinfo(dtype)
    parts = [np.array([ends.min, -1, 0, ends.max], dtype), np.array([-1, ends.max, ends.max, -1], dtype)]
    _agree(Kinds().combined(("op",), parts), parts, False)


@pytest.mark.parametrize("shapes", [((1,), (1,)), ((6,), (1,)), ((6, 1), (1, 3)), ((), (4,)), ((), ())])
def test_parts_broadcast(shapes):
    parts = [np.arange(int(np.prod(s)), dtype=np.uint8).reshape(s) for s in shapes]
    found = Kinds().combined(("op",), parts)
    assert found.ndim == max(map(len, shapes))
    _agree(found, parts, False)


def test_what_agrees_everywhere_is_one():
    kinds = Kinds()
    for value in (3, -1):
        assert kinds.combined(("sum",), [np.full(50, value, np.int8), np.array([2])]).shape == (1,)
    assert kinds.combined(("op",), [np.array([1, 2]), np.array([2, 1])], is_commutative=True).shape == (1,)
    assert kinds.combined(("op",), [np.array([1, 2]), np.array([2, 1])]).shape == (2,)
    assert kinds.combined(("op",), [np.zeros(0, np.uint8), np.array([1])]).shape == (0,)


def test_what_was_made_before_has_its_number():
    kinds = Kinds()
    first = kinds.combined(("op", "add"), [np.array([4, 5, 4]), np.array([7])])
    again = kinds.combined(("op", "add"), [np.array([5, 4]), np.array([7])])
    other = kinds.combined(("op", "subtract"), [np.array([4, 5, 4]), np.array([7])])
    assert again.tolist() == first[[1, 0]].tolist() and not set(other.tolist()) & set(first.tolist())
