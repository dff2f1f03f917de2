"""The order of members: their own where it is nearly that of the sweep, whole tasks and addresses by arithmetic."""

from __future__ import annotations

import numpy as np

from geoopt.meshes import cloth
from geoopt.plan import BEGIN, END, KERNEL

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
    assert write.table is None and write.stride == 1
    assert sorted(lengths(plan, 0))[1:] == [1024] * (len(F) // 1024)


def test_members_far_from_the_order_of_the_sweep_follow_it():
    V, F = cloth(4000)
    shuffled = np.random.default_rng(0).permutation(len(F))
    [kernel] = records(areas, V, F[shuffled])["place"].kernels
    [[write]] = kernel.writes
    assert write.table is not None
