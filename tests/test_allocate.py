"""Blocks of intermediates: lane after lane, or member after member where values of one member are read together."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import arap_mesh, arap_rhs, cloth, cloth_system, cotan_laplacian
from geoopt.plan.address import Linear

from .test_stages import check_all_stages, records


def writes_to_workspace(plan):
    return [[s.address for s in k.stores() if s.buffer == plan.workspace] for k in plan.kernels]


def normals_of_neighbours(x, pairs):
    """Three numbers per vertex, each costly enough to be stored, read together through one index."""
    length = np.sqrt(np.sum(x * x, axis=1))
    unit = np.exp(x / length[:, None])
    return np.cross(unit[pairs[:, 0]], unit[pairs[:, 1]])


PAIRS = np.random.default_rng(2).integers(0, 60, (400, 2))


@pytest.mark.parametrize("threads", [1, 3])
def test_values_that_are_read_together_lie_together(threads):
    x = np.random.default_rng(3).uniform(0.5, 2, (60, 3))
    check_all_stages(normals_of_neighbours, x, PAIRS, threads=threads)
    plan = records(normals_of_neighbours, x, PAIRS, threads=threads)["allocate"].plan
    [stored] = [places for places in writes_to_workspace(plan) if places]
    assert [(a.offset, a.varying) for a in stored] == [(0, (Linear(3),)), (1, (Linear(3),)), (2, (Linear(3),))]
    for kernel in plan.kernels:  # one column for the three values of each neighbour
        reads = [a for a in kernel.reads if a.buffer == plan.workspace]
        assert len({a.table for a in reads}) * 3 == len(reads)


def sums_of_corners(x, F):
    """Three vectors per face, stored coordinate by coordinate, of which each vertex sums its own."""
    p = np.moveaxis(x[F], 1, 2)  # (faces, coordinates, corners)
    v = np.exp(p / np.sqrt(np.sum(p * p, axis=(1, 2)))[:, None, None])
    out = np.zeros_like(x)
    np.add.at(out, F.ravel(), np.moveaxis(v, 1, 2).reshape(-1, 3))
    return out


@pytest.mark.parametrize("threads", [1, 2])
def test_values_that_are_read_together_are_neighbours_whatever_their_order(threads):
    V, F = bumpy(300)
    check_all_stages(sums_of_corners, V, F, threads=threads)
    plan = records(sums_of_corners, V, F, threads=threads)["allocate"].plan
    [stored] = [places for places in writes_to_workspace(plan) if places]
    assert sorted(a.offset for a in stored) == list(range(9))
    reads = [a for a in plan.kernels[-1].reads if a.buffer == plan.workspace]
    assert [a.offset for a in reads] == [0, 1, 2] and len({a.table for a in reads}) == 1


def test_values_that_are_read_alone_are_written_as_whole_vectors():
    V, F = bumpy(300)
    plan = records(cotan_laplacian, V, F)["allocate"].plan
    stored = [a for places in writes_to_workspace(plan) for a in places]
    assert stored and all(a.is_sequential and a.offset == 0 for a in stored)


def test_rotations_have_one_column_per_neighbour_in_the_right_hand_side_of_arap():
    V, F = bumpy(2000)
    plan = geoopt.compile(arap_rhs, V, arap_mesh(V, F)).plan
    [stored] = [places for places in writes_to_workspace(plan) if places]
    assert {a.varying for a in stored} == {(Linear(4),)}
    for kernel in plan.kernels:
        in_loop = [a for a in kernel.reads if a.buffer == plan.workspace and a.loop is not None]
        assert len({a.terms for a in in_loop}) <= 1


def test_values_whose_room_is_not_taken_over_stay_in_their_own_order():
    matrices = [sp.random_array((2000, 2000), density=0.003, format="csr", rng=k) for k in range(3)]
    found = records(lambda A, B, C: (A + B) @ (A @ B + C), *matrices)
    assert found["allocate"].plan is found["place"] or found["allocate"].plan is found["schedule"].plan
    written = [a for places in writes_to_workspace(found["allocate"].plan) for a in places]
    assert written and not any(a.of_task for a in written)
    # rows of the right matrix are whole runs, though three kernels write them


def test_values_whose_room_is_taken_over_share_it():
    V, F = bumpy(50_000)
    found = records(cotan_laplacian, V, F)
    assert found["allocate"].plan.workspace_size < found["place"].workspace_size / 4


def test_what_all_members_read_needs_no_column():
    V, F = bumpy(2000)
    plan = geoopt.compile(cloth_system, V, V, 0.01, cloth(V, F)).plan
    reads = [(k, a) for k in plan.kernels for a in k.reads if a.buffer == plan.workspace and k.size > 1]
    assert any(a.table is None for _, a in reads)
    assert all(np.ptp(plan.table(a.table)) > 0 for _, a in reads if a.table is not None)
