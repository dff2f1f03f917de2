"""The order of members: their own where it is nearly that of the sweep, whole tasks and addresses by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from geoopt import operators
from geoopt.integers.ids import Ids
from geoopt.integers.segments import STRIP, Segments
from geoopt.kernels import Loop
from geoopt.meshes import bumpy, cloth, tetrahedral_ball
from geoopt.operators import arap_mesh, arap_rhs, cotan_laplacian, dual_laplacian
from geoopt.place.order import Order
from geoopt.place.strips import Strips
from geoopt.plan.stores import RowStore
from geoopt.plan.task import BEGIN, COLUMN, END, KERNEL

from .test_stages import records


def lengths(plan, kernel):
    tasks = plan.tasks[plan.tasks[:, KERNEL] == kernel]
    return tasks[:, END] - tasks[:, BEGIN]


def areas(x, F):
    a, b, c = (x[F[:, i]] for i in range(3))
    return np.sqrt(np.sum(np.cross(b - a, c - a) ** 2, axis=1))


def test_members_nearly_in_order_stay_in_their_own_and_fill_their_tasks():
    V, F = cloth(4000)
    plan = records(areas, V, F)["place"]
    [kernel] = plan.kernels
    [[write]] = kernel.writes
    assert write.address.is_sequential
    assert sorted(lengths(plan, 0))[1:] == [1024] * (len(F) // 1024)


def test_members_far_from_the_order_of_the_sweep_follow_it():
    V, F = cloth(4000)
    shuffled = np.random.default_rng(0).permutation(len(F))
    [kernel] = records(areas, V, F[shuffled])["place"].kernels
    [[write]] = kernel.writes
    assert write.address.columns


def test_sums_over_vertices_in_random_order_are_taken_patch_by_patch():
    V, F = cloth(10_000)
    place = np.random.default_rng(1).permutation(len(V))
    edges = place[np.concatenate([F[:, [i, j]] for i in range(3) for j in range(3) if i != j])]
    center, neighbour = np.unique(edges, axis=0).T
    offsets = np.flatnonzero(np.append(True, np.diff(center)))

    def sums(x):
        return np.add.reduceat(x[neighbour] ** 2, offsets)

    plan = records(sums, V[np.argsort(place), 0])["place"]
    [kernel] = plan.kernels
    [read] = kernel.reads
    tasks = [t for t in plan.tasks if t[END] - t[BEGIN] > 500]
    assert len(tasks) >= len(V) // 2000
    for task in tasks:
        entries, members, _ = kernel.loops[read.loop].terms_of(task, plan.table)
        rows = len(np.unique(plan.table(read.table)[entries]))
        assert rows < 2 * len(np.unique(members))  # without a better order nearly six times as many


def test_tetrahedra_of_vertices_in_random_order_are_taken_patch_by_patch():
    V, T = tetrahedral_ball(8000)
    place = np.random.default_rng(2).permutation(len(V))
    plan = records(dual_laplacian, V[np.argsort(place)], place[T])["allocate"].plan
    assert plan.workspace_size < 6 * len(T) / 2  # values of one patch make room for those of the next


def test_triangles_of_vertices_in_random_order_share_them_with_those_before():
    """Within a task, too, so that what they read stays in the smallest cache."""
    V, F = cloth(10_000)
    rng = np.random.default_rng(4)
    place = rng.permutation(len(V))
    F = rng.permutation(place[F])
    plan = records(areas, V[np.argsort(place)], F)["place"]
    [kernel] = plan.kernels
    [[write]] = kernel.writes
    assert write.address.columns
    triangles = F[plan.table(write.address.table)]
    read = [len(np.unique(few)) for few in np.split(triangles, range(64, len(F), 64))]
    assert sorted(lengths(plan, 0)) == [1024] * 18 + [1024 + len(F) % 1024]  # a short rest has no task of its own
    assert np.mean(read) < 1.3 * 64  # as many as two rows of a grid have; without that order more than twice as many


def test_constants_of_vertices_in_random_order_are_written_as_others_add_to_them():
    """All at once before, they would be out of the cache again, and so would be what the additions keep for later."""
    V, F = cloth(20_000)
    place = np.random.default_rng(3).permutation(len(V))
    V, F = V[np.argsort(place)], place[F]
    shape = operators.cloth(V, F)
    plan = records(operators.cloth_system, V, np.zeros_like(V), 0.01, shape)["allocate"].plan
    assert any(kernel.added for kernel in plan.kernels)
    assert plan.workspace_size < 9 * len(F) / 3  # forces at the corners


def test_sums_that_read_the_same_constants_share_one_table():
    V, F = cloth(10_000)
    mesh = arap_mesh(V, F)
    plan = records(arap_rhs, V, mesh)["place"]
    first, second = plan.kernels
    assert {a.buffer for a in first.reads if a.loop is not None} & {a.buffer for a in second.reads}
    assert [loop.starts for loop in first.loops] == [loop.starts for loop in second.loops]
    floats = sum(len(t) for t in plan.tables if t.dtype.kind == "f")
    assert floats < 3 * 1.02 * len(mesh.weight)  # three numbers per edge, once, but for copies that fill strips


def test_ids_beyond_32_bits_stay_what_they_are():
    base, counts = np.arange(60, dtype=np.int32)[::-1].copy(), np.arange(40) % 4
    strips = Strips(Loop(Segments.of_lengths(counts)), Order(np.arange(40)[::-1].copy(), np.array([0]), np.array([40])))
    near, far = (strips.column(Ids((60,), offset, (0,), base)) for offset in (0, 2**33))
    np.testing.assert_array_equal(far, near.astype(np.int64) + 2**33)
    np.testing.assert_array_equal(near, base[strips.column(Ids.contiguous(0, (60,)))])


@pytest.mark.usefixtures("on_avx512")
def test_strips_of_a_task_follow_each_other_through_the_mesh():
    """Members sorted by their numbers of terms alone would cross the rows of a task once per number."""
    V, F = bumpy(20_000)
    plan = records(cotan_laplacian, V, F)["rows"].plan
    tasks = 0
    for task in plan.tasks:
        kernel, column = plan.kernels[task[KERNEL]], slice(*(task[COLUMN] + task[[BEGIN, END]]))
        for rows in {s.address.table for s in kernel.stores() if isinstance(s, RowStore)}:
            first = plan.table(rows)[column].astype(np.int64)
            strips = first[: len(first) // STRIP * STRIP : STRIP]
            assert (np.diff(strips) > 0).all()
            tasks += len(strips) > 1
    assert tasks > 10
