"""Hashes identify what they should and nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoopt.integers.hashing import (
    add_hashes,
    add_segment_hashes,
    first_equal,
    number_residue,
    positions_by_value,
)
from geoopt.ops import PRIME
from geoopt.simplify.values import hash_of
from geoopt.template import Template, bottom_up


def hashes_of(build):
    t = Template()
    leaf = [t.make("leaf", (), i) for i in range(100)]
    roots = build(t, leaf)
    found: dict[int, int] = {}
    for e in bottom_up(roots):
        found[id(e)] = hash_of(e, [found[id(a)] for a in e.args])
    return [found[id(r)] for r in roots]


def chain(t, op, parts):
    total = parts[0]
    for p in parts[1:]:
        total = t.make(op, (total, p))
    return total


def test_the_papers_distributive_example():
    def build(t, leaf):
        x, y, z, w = leaf[:4]
        two = t.make("constant", (), 2.0)
        mul, add = (lambda *a: chain(t, "multiply", a)), (lambda *a: chain(t, "add", a))
        return [
            mul(two, add(x, y), add(z, w)),
            add(mul(two, x, z), mul(add(mul(two, z), mul(two, w)), y), mul(x, w), mul(w, x)),
        ]

    first, second = hashes_of(build)
    assert first == second


def test_the_papers_hidden_constant():
    def build(t, leaf):
        x, y = leaf[:2]
        d = t.make("subtract", (x, y))
        mul, add, sub = (lambda a, b, op=op: t.make(op, (a, b)) for op in ("multiply", "add", "subtract"))
        top = add(mul(d, d), mul(x, y))
        bottom = add(sub(mul(x, x), mul(x, y)), mul(y, y))
        return [t.make("divide", (top, bottom))]

    assert hashes_of(build) == [1]


def test_products_of_many_variables_do_not_vanish():
    def build(t, leaf):
        twos = [t.make("add", (v, v)) for v in leaf[:80]]
        return [chain(t, "multiply", leaf[:80]), chain(t, "multiply", twos), chain(t, "multiply", leaf[:79])]

    found = hashes_of(build)
    assert 0 not in found and len(set(found)) == 3


def test_division_by_zero_is_opaque():
    def build(t, leaf):
        nothing = t.make("subtract", (leaf[0], leaf[0]))
        return [t.make("divide", (leaf[1], nothing)), t.make("divide", (leaf[2], nothing))]

    first, second = hashes_of(build)
    assert first != second and 0 not in (first, second)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_hash_as_exact_fractions(x, y):
    exact = Fraction(x) * Fraction(y)
    want = exact.numerator * pow(exact.denominator, PRIME - 2, PRIME) % PRIME
    assert number_residue(x) * number_residue(y) % PRIME == want


@given(st.lists(st.integers(0, 20), max_size=200))
def test_first_equal(values):
    keys = np.array(values, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert first_equal(keys).tolist() == [values.index(v) for v in values]


def test_added_hashes_identify_multisets_and_tuples():
    a, b = np.array([1, 2, 3, 1], np.int32), np.array([2, 1, 3, 2], np.int32)
    unordered, ordered = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
    for position, ids in enumerate((a, b)):
        add_hashes(unordered, ids, 0)
        add_hashes(ordered, ids, position)
    assert first_equal(unordered).tolist() == [0, 0, 2, 0]
    assert first_equal(ordered).tolist() == [0, 1, 2, 0]
    segments = np.zeros(4, np.uint64)
    add_segment_hashes(segments, np.array([4, 5, 5, 4, 5, 4, 5], np.int32), np.array([2, 2, 0, 3], np.int8))
    assert first_equal(segments).tolist() == [0, 0, 2, 3]


@pytest.mark.parametrize("base", [2.0, 3.0, 0.5, 10.0, 1.5])
def test_powers_of_small_numbers_do_not_come_back(base):
    powers, value = set(), 1
    for _ in range(4000):
        value = value * number_residue(base) % PRIME
        powers.add(value)
    assert len(powers) == 4000 and 1 not in powers


@given(st.lists(st.integers(0, 60), max_size=200), st.sampled_from([2, 64, 4096]))
def test_positions_by_value(values, sample):
    """Whether a look at some values finds them all, some, or too many."""
    array = np.array(values, np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoopt.integers.hashing.SAMPLE", sample)
        found = positions_by_value(array)
    assert sorted(int(array[p[0]]) for p in found) == sorted(set(values))
    assert all(p.tolist() == np.flatnonzero(array == array[p[0]]).tolist() for p in found)


def test_multisets_of_few_ids_have_hashes_of_their_own():
    """Also {x, x} and {2 x}, and whatever else a weak scrambling would confuse."""
    ones, pairs = np.arange(300), np.stack(np.triu_indices(300), axis=1)
    ids = np.concatenate([ones, pairs.ravel(), np.stack([ones, ones, ones], axis=1).ravel()])
    lengths = np.repeat([1, 2, 3], [len(ones), len(pairs), len(ones)])
    keys = np.zeros(len(lengths), np.uint64)
    add_segment_hashes(keys, ids, lengths)
    assert len(np.unique(keys)) == len(keys)
