"""Tasks run after what they need, whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

import geoopt
from geoopt import operators
from geoopt.meshes import bumpy, cloth
from geoopt.operators import cotan_laplacian
from geoopt.plan.task import BEGIN, END, KERNEL

from .test_random_programs import Choices
from .test_stages import records


def out_of_order(schedule):
    """Tasks that read what is not written yet, or by another worker of the same phase."""
    plan = schedule.plan
    sizes = [int(np.prod(s, dtype=int)) for s in plan.output_shapes] + [plan.workspace_size]
    first, found = len(plan.variable_sizes), []
    where = {}
    for phase, ends in enumerate(schedule.shares):
        for worker in range(len(ends) - 1):
            where.update((t, (phase, worker)) for t in range(ends[worker], ends[worker + 1]))
    writer = [np.full(s, -1) for s in sizes]
    for t, row in enumerate(plan.tasks):
        kernel = plan.kernels[row[KERNEL]]
        for access in (a for a in kernel.reads if first <= a.buffer <= plan.workspace):
            for source in np.unique(writer[access.buffer - first][plan.entries(access, row)]):
                if source < 0 or (where[source][0] == where[t][0] and where[source][1] != where[t][1]):
                    found.append((int(source), t))
        for store in kernel.stores():
            writer[store.buffer - first][plan.entries_stored(store, row)] = t
    return found


def check(function, *arguments, **options):
    seen = {}
    geoopt.compile(function, *arguments, options=geoopt.Options(**options), watch=seen.__setitem__)
    for stage in ("schedule", "allocate", "compress"):
        assert out_of_order(seen[stage]) == [], stage


@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 6),
    n=st.integers(1, 12),
    threads=st.integers(1, 5),
    blocks=st.booleans(),
    t_complexity=st.sampled_from([0, 4, 1000]),
)
@example(seed=1331, length=5, n=6, threads=1, blocks=False, t_complexity=0)  # joins numbers that are still on the tape
def test_random_programs(seed, length, n, threads, blocks, t_complexity):
    rng = np.random.default_rng(seed)
    F = rng.integers(0, n, (n, 3))
    arguments = rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, 3)), 0.7, F
    check(
        Choices(seed, length), *arguments, threads=threads, blocks=blocks, t_complexity=t_complexity, unrolled_terms=0
    )


def test_a_mesh_of_several_tasks():
    for threads in (1, 2, 7):
        check(cotan_laplacian, *bumpy(5000), threads=threads)


@pytest.mark.parametrize("threads", [2, 3])
def test_work_that_needs_values_from_everywhere_is_shared_evenly(threads):
    x, pairs = np.linspace(0, 1, 60_000), np.random.default_rng(0).integers(0, 60_000, (60_000, 2))

    def products(x):
        y = np.exp(np.sqrt(1 + x * x))
        return y[pairs[:, 0]] * y[pairs[:, 1]]

    found = records(products, x, threads=threads)["schedule"]
    members = np.cumsum(np.append(0, found.tasks[:, END] - found.tasks[:, BEGIN]))
    work = np.diff(members[found.shares], axis=1)
    assert (work.max(axis=1) <= 1.2 * work.mean(axis=1)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_tasks_that_need_values_from_everywhere_keep_their_order(threads):
    """They cannot follow what they need through the cache, but can write one after the other."""
    A = sp.random_array((3000, 3000), density=0.004, format="csr", rng=0)

    def product(A):
        return A @ (A @ A)

    plan = records(product, A, threads=threads, lanes=8)["schedule"].plan
    last = max((k for k in range(len(plan.kernels))), key=lambda k: (plan.kernels[k].level, plan.kernels[k].size))
    begins = plan.tasks[plan.tasks[:, KERNEL] == last, BEGIN]
    assert len(begins) > 1000
    assert np.mean(np.diff(begins) > 0) > 0.99


def test_large_parts_of_the_sweep_follow_the_small_ones_in_them():
    """Kernels of few tasks write far apart: what lies between is in the cache when others were there before."""
    x, y = np.ones((8 * 1024, 2)), np.ones(3 * 1024)
    plan = records(lambda x, y: (x[:, 0] * x[:, 1], np.sqrt(y)), x, y)["schedule"].plan
    is_large = [plan.kernels[k].size == len(y) for k in plan.tasks[:, KERNEL]]
    assert np.flatnonzero(is_large[:-2]).tolist() == [2, 6]  # after a third and two thirds of the others


@pytest.mark.parametrize("workers", [2, 3])
def test_tasks_are_shared_evenly(workers):
    found = records(lambda x: np.sqrt(x), np.ones(12 * 1024), threads=workers)["schedule"]
    assert (np.diff(found.shares, axis=1) == 12 // workers).all()


def test_workers_share_additions_to_entries_in_another_order():
    """Most of them would meet others almost anywhere, if times were those of what wrote the entries before."""
    V, F = cloth(20_000)
    place = np.random.default_rng(3).permutation(len(V))
    V, F = V[np.argsort(place)], place[F]
    shape = operators.cloth(V, F)
    A, _ = operators.cloth_system(V, np.zeros_like(V), 0.01, shape)

    def added(x, A):
        return A + operators.cloth_system(x, np.zeros(x.shape), 0.01, shape)[0]

    found = records(added, V, A, threads=2)["schedule"]
    adds = np.array([bool(kernel.added) for kernel in found.plan.kernels])[found.plan.tasks[:, KERNEL]]
    work = np.diff(np.append(0, np.cumsum(adds))[found.shares], axis=1)
    assert work.max(axis=1).sum() < 0.8 * adds.sum()
