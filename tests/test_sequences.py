"""Grids: members whose entries follow each other are evaluated by vectors of neighbours, and columns tell little."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.evaluate import evaluate
from geoopt.options import Options
from geoopt.pipeline import planned
from geoopt.plan.task import BEGIN, KERNEL

RNG = np.random.default_rng(0)


def periodic(f):
    return f + 0.1 * sum(np.roll(f, by, axis) for axis in range(f.ndim) for by in (1, -1)) - 0.2 * f.ndim * f


def inner(f):
    """Of what lies inside, by slices."""
    g = f.copy()
    g[1:-1, 1:-1] = 0.25 * (f[:-2, 1:-1] + f[2:, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:])
    return g


def padded(f):
    p = np.pad(f, 1, mode="edge")
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * f


def two_fields(f):
    """Several steps of two fields, intermediates of which are read in the order in which they are written."""
    u, v = f, f * f
    for _ in range(3):
        u, v = periodic(u) - u * v, periodic(v) + u * v
    return u, v


def unordered(f):
    """Of which nothing is read in order."""
    return f.ravel()[np.random.default_rng(1).permutation(f.size)] * 2.0


def coarse(f):
    """Every other row and column, of which each other row is turned."""
    n, m = f.shape[0] // 2, f.shape[1] // 2
    return f[: 2 * n : 2, : 2 * m : 2] + 0.5 * f[1::2, 1::2] - f[: 2 * n : 2, 2 * m - 1 :: -2]


def broadcast(f):
    """One number for all of a row, and one for all of a column."""
    return f * np.roll(f[:, :1], 1, 0) + np.roll(f[:1], 1, 1)


def channels(f):
    """The last axis holds three values of a point."""
    g = f[:, : f.shape[1] // 3 * 3].reshape(len(f), -1, 3)
    length = np.sqrt((g * g).sum(axis=2, keepdims=True) + 1)
    return np.roll(g, 1, 0) / length + np.roll(g, 1, 1)


STENCILS = [periodic, inner, padded, two_fields, coarse, broadcast]


def fields(result) -> list[np.ndarray]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize("lanes, dtype", [(2, np.float64), (8, np.float64), (4, np.float32), (16, np.float32)])
@pytest.mark.parametrize("stencil", [*STENCILS, channels, unordered])
def test_as_numpy(stencil, lanes, dtype):
    f = RNG.random((70, 37)).astype(dtype)
    program = geoopt.compile(stencil, f, dtype=dtype, options=Options(lanes=lanes))
    for got, want in zip(fields(program(f)), fields(stencil(f)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == np.float32 else 1e-13, atol=1e-6)


def test_three_dimensions_and_several_threads():
    f = RNG.random((20, 31, 45))
    program = geoopt.compile(periodic, f, options=Options(threads=3))
    np.testing.assert_allclose(program(f), periodic(f), rtol=1e-13)


def last_stages(stencil, f, monkeypatch, **options):
    """The records of the last two stages, of tasks that are short, so that there are many."""
    monkeypatch.setattr("geoopt.place.TASK_MEMBERS", 200)
    found: dict = {}
    planned(stencil, f, options=Options(lanes=8, **options), watch=found.__setitem__)
    return found["compress"], found["sequences"]


@pytest.mark.parametrize("stencil", STENCILS)
@pytest.mark.parametrize("span", [1 << 16, 800])  # tasks that do not fit get kernels of their own
def test_tasks_address_the_same_entries(stencil, span, monkeypatch):
    monkeypatch.setattr("geoopt.compress.SPAN", span)
    f = RNG.random((41, 57))
    before, after = last_stages(stencil, f, monkeypatch, threads=2)
    assert any(kernel.sequences for kernel in after.plan.kernels)
    for row in range(len(before.tasks)):
        both = [(s.plan, s.tasks[row], s.plan.kernels[s.tasks[row][0]].addresses()) for s in (before, after)]
        for listed, in_sequence in zip(*(addresses for *_, addresses in both), strict=True):
            entries = [p.entries(a, task) for (p, task, _), a in zip(both, (listed, in_sequence), strict=True)]
            np.testing.assert_array_equal(*entries)
    for got, want in zip(evaluate(after, [f]), fields(stencil(f)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("stencil", [periodic, padded, two_fields])
def test_columns_have_few_entries(stencil, monkeypatch):
    """One for each row, or part of a row that a task has, and one for each of the few members at the ends of rows."""
    f = RNG.random((60, 400))
    before, after = last_stages(stencil, f, monkeypatch)
    sizes = [sum(t.nbytes for t in s.plan.tables) for s in (before, after)]
    assert sizes[1] < sizes[0] / 10
    assert all(kernel.sequences for kernel in after.plan.kernels if kernel.size > 1000)


def of_rows(plan, kernel):
    """How many sequences a kernel has, and where its tasks begin."""
    sequences, rows = plan.kernels[kernel].sequences, plan.tasks[plan.tasks[:, KERNEL] == kernel]
    return sequences and len(plan.table(sequences.firsts)), np.sort(rows[:, BEGIN])


def test_tasks_end_where_rows_end():
    """So that a row reads rows that lie in one block each: of these it is one sequence, and its two ends."""
    side = 300
    plan = planned(two_fields, RNG.random((side, side)))
    plan = plan.plan
    assert [k.size for k in plan.kernels] == [side * side] * 3
    for kernel in range(3):
        count, begins = of_rows(plan, kernel)
        assert count == 3 * side and not (begins % side).any()


def sweeps(f):
    """Values inside of the grid, that stay at its border, several times."""
    for _ in range(4):
        g = f.copy()
        g[1:-1, 1:-1] = 0.25 * (f[:-2, 1:-1] + f[2:, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:])
        f = g
    return f


def test_the_members_at_a_border_do_not_hold_up_the_sweep():
    """One task of all of a border would be waited for by every later step: intermediates would not share memory."""
    side = 300
    schedule = planned(sweeps, RNG.random((side, side)))
    assert schedule.plan.workspace_size < side * side
    tasks, kernels = schedule.tasks, schedule.plan.kernels
    at_border = [n for n, k in enumerate(kernels) if 1 < k.level and k.size == 2]  # the corners of the inner grid
    assert at_border and all(np.count_nonzero(tasks[:, KERNEL] == n) == 2 for n in at_border)


def test_widths_of_vectors_share_one_plan(tmp_path):
    """Sequences are longer than any vector, so that files are for all."""
    f = RNG.random((50, 60))
    narrow, wide = (geoopt.compile(two_fields, f, options=Options(lanes=lanes)) for lanes in (2, 8))
    for one, other in zip(narrow.plan.tables, wide.plan.tables, strict=True):
        np.testing.assert_array_equal(one, other)
    narrow.save(tmp_path / "narrow")
    np.testing.assert_array_equal(fields(geoopt.load(tmp_path / "narrow")(f)), fields(narrow(f)))


def test_what_is_in_no_order_keeps_its_columns(monkeypatch):
    before, after = last_stages(unordered, RNG.random((41, 57)), monkeypatch)
    assert not any(kernel.sequences for kernel in after.plan.kernels)
    for one, other in zip(before.plan.tables, after.plan.tables, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("side", [20, 50, 141])
def test_a_step_is_one_kernel_whatever_the_size(side):
    """What only its own point reads is not stored, though a grid has as many columns as rows."""
    plan = geoopt.compile(periodic, RNG.random((side, side))).plan
    assert len(plan.kernels) == 1 and not plan.workspace_size
