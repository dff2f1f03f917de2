"""Chunks of outputs: no member writes to two, each is written by its members, and the text writes them as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.grid import CHUNK
from geoopt.meshes import bumpy, cloth, tetrahedral_ball
from geoopt.operators import cloth as cloth_of
from geoopt.operators import cloth_system, cotan_laplacian, dual_laplacian
from geoopt.place.chunks import _cut, _reach
from geoopt.plan.task import BEGIN, END, KERNEL

from .cases_operators import CASES, case
from .conftest import grid_of

RNG = np.random.default_rng(4)


def plan_of(function, *arguments):
    return grid_of(function, *arguments, assembly="gather").plan


def written(plan, kernel, buffer):
    """Per member of a kernel the entries that it writes to a buffer."""
    entries = [[] for _ in range(plan.kernels[kernel].size)]
    for row in plan.tasks[plan.tasks[:, KERNEL] == kernel]:
        for store in (s for s in plan.kernels[kernel].stores() if s.buffer == buffer):
            of_task = plan.entries_stored(store, row)
            members = np.arange(row[BEGIN], row[END])
            if store.loop is not None:
                members = members[plan.kernels[kernel].loops[store.loop].terms_of(row, plan.table).member]
            for member, entry in zip(members, np.broadcast_to(of_task, members.shape), strict=True):
                entries[member].append(entry)
    return entries


@pytest.mark.parametrize("name", CASES)
def test_members_write_to_their_own_chunk_and_together_all_of_it(name):
    function, arguments = case(name)
    plan = plan_of(function, *arguments)
    for chunks in plan.chunks:
        starts = plan.table(chunks.starts).astype(int)
        assert starts[0] == 0 and starts[-1] == plan.buffer_sizes[chunks.buffer] and np.diff(starts).max() <= CHUNK
        found = []
        for kernel, table in zip(chunks.kernels, chunks.firsts, strict=True):
            firsts = plan.table(table).astype(int)
            assert firsts[0] == 0 and firsts[-1] == plan.kernels[kernel].size and len(firsts) == len(starts)
            entries = written(plan, kernel, chunks.buffer)
            for chunk in range(len(starts) - 1):
                inside = [e for member in entries[firsts[chunk] : firsts[chunk + 1]] for e in member]
                assert all(starts[chunk] <= e < starts[chunk + 1] for e in inside)
                found += inside
        np.testing.assert_array_equal(np.unique(found), np.arange(starts[-1]))


def test_which_outputs_are_written_by_chunks():
    """Rows of the Laplacian, the mass matrix, whose rows have different numbers of terms, both parts of a cloth's
    system: by all kernels that there are for them."""
    plan = plan_of(cotan_laplacian, *bumpy(600))
    assert [plan.kernels[k].level for c in plan.chunks for k in c.kernels] == [2, 2] and len(plan.kernels) == 3
    V, F = cloth(9)
    plan = plan_of(lambda x, v: cloth_system(x, v, 0.01, cloth_of(V, F)), V, 0 * V)
    assert [len(c.kernels) for c in plan.chunks] == [4, 1]
    assert all(len({plan.kernels[k].level for k in c.kernels}) == 1 for c in plan.chunks)


def test_what_is_written_in_order_or_far_apart_is_not():
    assert not plan_of(lambda x: 2 * x, np.ones(5000)).chunks
    plan = plan_of(dual_laplacian, *tetrahedral_ball(3000))  # an edge is written to both triangles of L
    assert [plan.buffer_sizes[c.buffer] for c in plan.chunks] == [plan.output_sizes[1]]


def test_entries_that_a_member_writes_twice_are_no_obstacle():
    """A Hessian's values go to both triangles, those on the diagonal to the same place."""
    V, F = cloth(20)

    def springs(x):
        return np.sum((np.linalg.norm(x[F[:, 0]] - x[F[:, 1]], axis=1) - 0.7) ** 2)

    hessian = geoopt.hessian(springs)
    plan = plan_of(hessian, V)
    assert [plan.buffer_sizes[c.buffer] for c in plan.chunks] == [plan.output_sizes[0]]
    np.testing.assert_allclose(plan.evaluate([V], plan.tasks)[0], geoopt.compile(hessian, V)(V).data, atol=1e-12)


def test_kernels_with_more_arguments_than_cuda_takes_run_apart():
    orders = RNG.permuted(np.tile(np.arange(200), (7, 80, 1)), axis=2)
    outputs = np.array_split(RNG.permutation(7 * 200), 7)

    def wide(x):
        y = np.zeros(7 * 200)
        for k, own in enumerate(orders):
            y[outputs[k]] = sum(np.sin(x[order] * (k + 1.0)) for order in own)
        return y

    plan = plan_of(wide, np.ones(200))
    assert not plan.chunks and len(plan.kernels) >= 7


def test_an_output_that_others_read_before_is_complete_is_not():
    order = np.random.default_rng(0).permutation(4000)

    def twice(x):
        y = np.concatenate([np.sqrt(x)[order], np.zeros(4000)])
        return y, np.exp(y[:4000])[order]

    x = np.linspace(1, 2, 4000)
    for got, want in zip(geoopt.compile(twice, x)(x), twice(x), strict=True):
        np.testing.assert_allclose(got, want)
    plan = plan_of(twice, x)
    for got, want in zip(plan.evaluate([x], plan.tasks), twice(x), strict=True):
        np.testing.assert_allclose(got, want)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=60), st.integers(1, 40))
def test_no_cut_goes_through_what_one_member_writes(extents, usual):
    low = np.array([first for first, _ in extents], np.int64)
    high = np.array([min(first + length, 240) for first, length in extents], np.int64)
    reach = np.arange(241, dtype=np.int32)
    _reach(low, high, reach)
    starts = np.zeros(600, np.int32)
    most = 2 * usual
    count = _cut(reach, usual, most, starts)
    inside = np.zeros(242, int)
    np.add.at(inside, low + 1, 1)
    np.add.at(inside, high + 1, -1)
    free = np.flatnonzero(np.append(np.cumsum(inside)[:241] == 0, True))  # where a cut may be
    if not count:
        assert np.diff(free).max() > most
        return
    starts = starts[: count + 1]
    assert starts[0] == 0 and starts[-1] == 241 and (np.diff(starts) > 0).all() and np.isin(starts, free).all()
    assert (np.diff(starts) <= max(usual, np.diff(free).max())).all()
