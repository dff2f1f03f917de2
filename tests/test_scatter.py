"""The three ways to assemble give the same; additions happen in an order that does not depend on the threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.decompose.mirrors import align
from geoopt.evaluate import evaluate
from geoopt.meshes import bumpy
from geoopt.meshes import cloth as cloth_mesh
from geoopt.operators import (
    cloth,
    cloth_system,
    cotan_laplacian,
    edges,
    spring_energy,
    stretch_shear_energy,
    symmetric_dirichlet_energy,
)
from geoopt.plan.task import KERNEL
from geoopt.sparse import from_triplets

from .test_schedule import out_of_order
from .test_stages import check_all_stages

WAYS = ("auto", "gather", "recompute", "scatter")


def moved_cloth(vertices=300, is_shuffled=False, strays=0):
    """is_shuffled : vertices and triangles in no order;  strays : how many vertices change places"""
    V, F = cloth_mesh(vertices)
    rng = np.random.default_rng(5)
    if is_shuffled:
        order = rng.permutation(len(V))
        V, F = V[order], rng.permutation(np.argsort(order)[F].astype(np.int32))
    if strays:
        order, some = np.arange(len(V)), rng.choice(len(V), strays, replace=False)
        order[some] = rng.permutation(some)
        V, F = V[order], np.argsort(order)[F].astype(np.int32)
    return V + 0.01 * rng.standard_normal(V.shape), rng.standard_normal(V.shape), 0.01, cloth(V, F)


def compiled(function, *arguments, dtype=np.float64, **options):
    seen = {}
    program = geoopt.compile(
        function, *arguments, dtype=dtype, options=geoopt.Options(**options), watch=seen.__setitem__
    )
    return program, seen


def additions(program):
    return [a for kernel in program.plan.kernels for a in kernel.added]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_a_cloth_is_the_same_each_way(way, dtype, tolerance):
    x, v, h, c = moved_cloth()
    program, _ = compiled(cloth_system, x, v, h, c, dtype=dtype, assembly=way)
    A, b = program(x, v, h)
    A_truth, b_truth = cloth_system(x, v, h, c)
    assert abs(A - A_truth).max() <= tolerance * abs(A_truth).max()
    np.testing.assert_allclose(b, b_truth, rtol=0, atol=tolerance * np.abs(b_truth).max())
    assert bool(additions(program)) == (way in ("auto", "scatter"))


def test_blocks_of_many_values_are_scattered_and_those_of_few_are_not():
    x, v, h, c = moved_cloth()
    program, _ = compiled(cloth_system, x, v, h, c)
    assert {len(k.added) for k in program.plan.kernels} == {0, 81}
    assert program.report()["workspace_bytes"] <= 8 * (1 + 9 * len(c.F)) * 2  # forces, no blocks
    assert not additions(compiled(cotan_laplacian, *bumpy(500))[0])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "recompute"])  # which takes too long to compile
def test_a_hessian_is_the_same_each_way(way):
    V, F = cloth_mesh(120)
    U = V[:, :2] + 0.001 * np.random.default_rng(3).standard_normal((len(V), 2))
    hessian = geoopt.hessian(symmetric_dirichlet_energy)
    program, _ = compiled(hessian, U, V, F, assembly=way)
    truth = hessian(U, V, F)
    assert abs(program(U, V) - truth).max() <= 1e-12 * abs(truth).max()
    assert bool(additions(program)) == (way == "scatter")


def test_elements_of_few_values_are_scattered_with_those_of_many():
    V, F = cloth_mesh(100)
    springs, rest = edges(F), cloth(V, F)
    V = V + 0.01 * np.random.default_rng(2).standard_normal(V.shape)

    def energy(x):
        return stretch_shear_energy(x, rest) + spring_energy(x, springs, 0.05, 3.0)

    truth = geoopt.hessian(energy)(V)
    program, _ = compiled(geoopt.hessian(energy), V)
    assert abs(program(V) - truth).max() <= 1e-12 * abs(truth).max()
    assert sum(bool(kernel.added) for kernel in program.plan.kernels) >= 2


def test_kinds_of_different_numbers_of_elements_are_scattered_together():
    V, F = cloth_mesh(40)
    V = V + 0.05 * np.random.default_rng(3).standard_normal(V.shape)

    def energy(x):
        a, b, c = x[F[:, 0]], x[F[:, 1]], x[F[:, 2]]
        areas = np.sqrt(1e-3 + np.sum(np.cross(b - a, c - a) ** 2, axis=1))
        return np.sum(areas) + np.sum(np.exp(x[::2, 0] * x[::2, 1] * x[::2, 2]))

    truth = geoopt.hessian(energy)(V)
    program, _ = compiled(geoopt.hessian(energy), V)
    assert additions(program)
    assert abs(program(V) - truth).max() <= 1e-12 * abs(truth).max()


def test_every_stage_means_the_same():
    x, v, h, c = moved_cloth(60)
    _, seen = compiled(cloth_system, x, v, h, c)
    A, b = cloth_system(x, v, h, c)
    for stage, ir in seen.items():
        if stage == "assemble":
            continue
        data, right = evaluate(ir, [x, v, np.array(h)])
        np.testing.assert_allclose(data, A.data, rtol=0, atol=1e-12 * np.abs(A.data).max(), err_msg=stage)
        np.testing.assert_allclose(right, b, rtol=0, atol=1e-12 * np.abs(b).max(), err_msg=stage)


def order_of_additions(plan):
    """Per entry of the output, which kernel's members add to it, in running order."""
    entries, who = [], []
    members = np.cumsum([0] + [k.size for k in plan.kernels])
    for row in plan.tasks:
        kernel = plan.kernels[row[KERNEL]]
        for store in kernel.added:
            at = plan.entries_stored(store, row)
            entries.append(at)
            who.append(members[row[KERNEL]] + np.arange(row[1], row[2]))
    entries, who = np.concatenate(entries), np.concatenate(who)
    order = np.argsort(entries, kind="stable")
    return entries[order], who[order]


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_the_order_of_additions_does_not_depend_on_the_threads(is_shuffled):
    x, v, h, c = moved_cloth(12_000, is_shuffled)
    results, orders = [], []
    for threads in (1, 3):
        program, seen = compiled(cloth_system, x, v, h, c, threads=threads)
        results.append([r.copy() for r in (program(x, v, h)[0].data, program(x, v, h)[1])])
        orders.append(order_of_additions(seen["schedule"].plan))
    for result, order in zip(results[1:], orders[1:], strict=True):
        np.testing.assert_array_equal(result[0], results[0][0])
        np.testing.assert_array_equal(result[1], results[0][1])
        np.testing.assert_array_equal(order[0], orders[0][0])
        np.testing.assert_array_equal(order[1], orders[0][1])


def test_additions_of_several_levels_have_one_order():
    V, F = cloth_mesh(12_000)
    rows, cols = (np.broadcast_to(i, (len(F), 3, 3)) for i in (F[:, :, None], F[:, None, :]))

    def assembled(x):
        first = np.sin(x[F][:, :, None] * x[F][:, None, :])
        nearby = np.bincount(F.ravel(), weights=np.cos(x[F] ** 2).ravel(), minlength=len(x))
        second = np.sqrt(1 + (nearby[F][:, :, None] - x[F][:, None, :]) ** 2)
        A, B = (from_triplets(rows, cols, blocks, (len(x), len(x))) for blocks in (first, second * second[:, ::-1]))
        return A - B

    x = np.random.default_rng(0).uniform(-1, 1, len(V))
    truth = assembled(x)
    results = []
    for threads in (1, 2, 3, 5):
        program, seen = compiled(assembled, x, threads=threads, assembly="scatter")
        assert conflicts(seen["schedule"]) == 0
        results.append(program(x).data.copy())
        np.testing.assert_array_equal(results[-1], results[0])
    assert len({k.level for k in program.plan.kernels if k.added}) >= 1
    np.testing.assert_allclose(results[0], truth.data, rtol=0, atol=1e-12 * np.abs(truth.data).max())


def conflicts(schedule):
    """Entries that two workers touch in one phase, if one of them adds or writes."""
    plan, found = schedule.plan, 0
    output = len(plan.variable_sizes)
    for phase in schedule.shares:
        owner = np.full(plan.output_sizes[0], -1)
        for worker in range(len(phase) - 1):
            for row in plan.tasks[phase[worker] : phase[worker + 1]]:
                for store in plan.kernels[row[KERNEL]].stores():
                    if store.buffer == output:
                        at = plan.entries_stored(store, row)
                        found += int(((owner[at] != -1) & (owner[at] != worker)).sum())
                        owner[at] = worker
    return found


@pytest.mark.parametrize("threads, is_shuffled", [(2, False), (3, True), (7, True)])
def test_no_two_threads_add_to_one_entry_at_once(threads, is_shuffled):
    x, v, h, c = moved_cloth(12_000, is_shuffled)
    schedule = compiled(cloth_system, x, v, h, c, threads=threads)[1]["schedule"]
    assert conflicts(schedule) == 0
    adds = np.array([bool(k.added) for k in schedule.plan.kernels])[schedule.tasks[:, KERNEL]]
    busy = [[int(adds[a:b].sum()) for a, b in itertools.pairwise(phase)] for phase in schedule.shares]
    assert sum(map(max, busy)) <= 0.7 * adds.sum()  # not one thread alone


@pytest.mark.parametrize("n, has_more", [(3, False), (4, True), (12, False), (12, True)])
def test_many_elements_add_to_few_entries(n, has_more):
    """What so few entries are without the elements is written before all else; the elements take turns all the same."""
    rng = np.random.default_rng(n)
    few, many = rng.integers(0, n, (5000, 7)), rng.integers(0, 500, (5000, 7))
    x, y = rng.uniform(-1, 1, n), rng.uniform(-1, 1, 500)

    def matrix(corner, E, n):
        blocks = corner[:, :, None] * corner[:, None, :] + np.sqrt(corner[:, :1, None] ** 2 + 1)
        rows, cols = np.broadcast_to(E[:, :, None], blocks.shape), np.broadcast_to(E[:, None, :], blocks.shape)
        return from_triplets(rows, cols, blocks, (n, n))

    def assembled(x, y):
        small = matrix(x[few] + y[many] if has_more else x[few], few, n)
        return small.data, matrix(x[few] * y[many], many, 500).data if has_more else y

    want, found = assembled(x, y), []
    for threads in (1, 2, 7):
        program, seen = compiled(assembled, x, y, threads=threads)
        assert conflicts(seen["schedule"]) == 0
        found.append(program(x, y))
        for mine, first, right in zip(found[-1], found[0], want, strict=True):
            np.testing.assert_array_equal(mine, first)
            np.testing.assert_allclose(mine, right, rtol=1e-11)


@given(
    seed=st.integers(0, 2**32 - 1),
    elements=st.integers(1, 40),
    n=st.integers(1, 12),
    corners=st.integers(1, 4),
    form=st.sampled_from(["sum", "add", "subtract", "negative", "twice", "both"]),
    threads=st.integers(1, 4),
)
def test_random_assemblies(seed, elements, n, corners, form, threads):
    rng = np.random.default_rng(seed)
    E = rng.integers(0, n, (elements, corners))

    def assembled(x, y):
        corner = x[E]
        blocks = corner[:, :, None] * corner[:, None, :] + np.sqrt(corner[:, :1, None] ** 2 + 1)
        rows, cols = np.broadcast_to(E[:, :, None], blocks.shape), np.broadcast_to(E[:, None, :], blocks.shape)
        A = from_triplets(rows, cols, blocks, (n, n))
        D = from_triplets(np.arange(n), np.arange(n), y, (n, n))
        B = from_triplets(cols, rows, y[E][:, :, None] * blocks, (n, n))
        return {"sum": A, "add": A + D, "subtract": D - A, "negative": -A, "twice": A - D - A.T, "both": A - B + D}[
            form
        ]

    x, y = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    truth = assembled(x, y).toarray()
    for way in WAYS:
        program, _ = compiled(assembled, x, y, assembly=way, threads=threads)
        np.testing.assert_allclose(program(x, y).toarray(), truth, rtol=0, atol=1e-12 * max(np.abs(truth).max(), 1))


def test_nan_stays_in_its_element():
    x, v, h, c = moved_cloth()
    program, _ = compiled(cloth_system, x, v, h, c)
    x[7, 1] = np.nan
    found, truth = program(x, v, h)[0].data, cloth_system(x, v, h, c)[0].data
    np.testing.assert_array_equal(np.isnan(found), np.isnan(truth))


def test_an_unknown_way_and_one_that_a_device_lacks():
    with pytest.raises(geoopt.ArgumentError, match="assembly='atomics'"):
        geoopt.Options(assembly="atomics")
    with pytest.raises(geoopt.ArgumentError, match="for the CPU"):
        geoopt.compile(cotan_laplacian, *bumpy(50), device="cuda-on-host", options=geoopt.Options(assembly="scatter"))


def test_entries_and_their_mirror_images_are_listed_alike_for_all_elements():
    n, rng = 50, np.random.default_rng(3)
    corners = np.array([rng.permutation(n)[:3] for _ in range(200)])  # in any order, so that entries are, too
    degrees = (3 * corners[:, :, None] + np.arange(3)).reshape(-1, 9)
    pairs, lanes = [], [(a, b) for a in range(9) for b in range(a)]
    for a, b in lanes:
        entries = np.stack([degrees[:, a] * 3 * n + degrees[:, b], degrees[:, b] * 3 * n + degrees[:, a]])
        pairs.append(np.sort(entries, axis=0))
    before = [np.sort(pair, axis=0) for pair in pairs]
    align(pairs)
    assert all((np.sort(pair, axis=0) == old).all() for pair, old in zip(pairs, before, strict=True))
    of_lane = dict(zip(lanes, pairs, strict=True))
    for block in ((3, 0), (6, 0), (6, 3)):  # in blocks off the diagonal: rows in one list, columns in the other
        for r, c in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)):
            steps = of_lane[block[0] + r, block[1] + c + 1] - of_lane[block[0] + r, block[1] + c]
            assert (steps == 1).all(axis=1).any(), (block, r, c)


@pytest.mark.parametrize(
    "lanes, dtype, tolerance",
    [*((lanes, np.float64, 1e-13) for lanes in (1, 2, 4, 8)), (8, np.float32, 1e-5), (16, np.float32, 1e-5)],
)
def test_vectors_of_any_width_add_the_same(lanes, dtype, tolerance):
    x, v, h, c = moved_cloth()
    program, _ = compiled(cloth_system, x, v, h, c, dtype=dtype, lanes=lanes)
    assert additions(program)
    truth = cloth_system(x, v, h, c)[0]
    assert abs(program(x, v, h)[0] - truth).max() <= tolerance * abs(truth).max()


@pytest.mark.parametrize("strays, threads", [(0, 1), (0, 3), (60, 2), (1000, 3)])
def test_what_is_stored_beside_additions_is_read_after_them(strays, threads):
    x, v, h, c = moved_cloth(12_000, strays=strays)
    program, seen = compiled(cloth_system, x, v, h, c, threads=threads)
    assert out_of_order(seen["schedule"]) == []
    A, b = cloth_system(x, v, h, c)
    for _ in range(2):  # the workspace holds what the first call left
        found = program(x, v, h)
        np.testing.assert_allclose(found[0].data, A.data, rtol=0, atol=1e-12 * np.abs(A.data).max())
        np.testing.assert_allclose(found[1], b, rtol=0, atol=1e-12 * np.abs(b).max())


SIZE, FEWER = 3_000, 2_000  # elements, and entries that several of them meet
RANDOM = np.random.default_rng(7)
CORNERS = RANDOM.integers(0, SIZE, (SIZE, 3))
CORNERS[:, 0] = RANDOM.permutation(SIZE)  # each entry is met
OTHERS, SOME = RANDOM.integers(0, FEWER, (SIZE, 3)), RANDOM.integers(0, FEWER, FEWER)
SOME_TWICE = RANDOM.permutation(np.concatenate([np.arange(2 * FEWER), np.arange(FEWER, FEWER + 700)]))


def of_elements(V):
    x = V[CORNERS]
    return np.sin(x[:, 0, 0] * x[:, 1, 1]) * x[:, 2, 2] + x[:, 1, 0]


def added_up(E, corners, entries):
    at = CORNERS[:, :corners] % entries
    return from_triplets(at, 0 * at, np.stack([E] * corners, axis=1), (entries, 1)).data


def in_turn(a, b):
    order = np.random.default_rng(0)
    return np.concatenate([a, b])[np.stack([len(a) + order.permutation(len(b)), order.permutation(len(a))], 1).ravel()]


def beside_what_elements_write(V):
    E = of_elements(V)
    return (in_turn(added_up(E, 2, SIZE), E * 2),)


def beside_what_is_stored(V):
    sums = added_up(of_elements(V), 1, FEWER)
    G = (np.exp(V[:, 0] * V[:, 1]) * V[:, 2])[:FEWER]
    return in_turn(sums, G[SOME]), G[OTHERS[:, 0]] + G[OTHERS[:, 1]] * G[OTHERS[:, 2]]


def to_what_is_stored(V):
    sums, both = added_up(of_elements(V), 1, FEWER), np.concatenate([V[:FEWER, 1], V[:FEWER, 2]])
    G = np.exp(both * both[::-1]) * both
    found = (np.concatenate([sums, V[:FEWER, 0]]) + G)[SOME_TWICE]
    return found, G[OTHERS[:, 0]] + G[OTHERS[:, 1]] * G[OTHERS[:, 2]]


def to_what_elements_write(V):
    E, out = of_elements(V), np.zeros(SIZE)
    np.add.at(out, CORNERS[:, 1], E)
    return (out + E,)


@pytest.mark.parametrize(
    "function", [beside_what_elements_write, beside_what_is_stored, to_what_is_stored, to_what_elements_write]
)
@pytest.mark.parametrize("without", [(), ("memory",)])
def test_all_of_an_output_is_written_before_others_add_to_it(function, without):
    V = RANDOM.normal(size=(SIZE, 3))
    check_all_stages(function, V, assembly="scatter", without=frozenset(without))
    program = geoopt.compile(function, V, options=geoopt.Options(assembly="scatter", without=frozenset(without)))
    for got, want in zip(program(V), function(V), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_values_that_are_no_columns_are_added_alike(monkeypatch):
    """Of few elements with many values, of which some go to two entries that mirror each other."""
    monkeypatch.setattr("geoopt.graph.references.LANES", {16: 0})
    V, F = np.array([[0.0, 0, 0], [1, 0, 0.1], [1, 1, 0], [0, 1, 0.2]]), np.array([[0, 1, 2], [0, 2, 3]])
    c, v = cloth(V, F), np.full(V.shape, 0.01)
    moved = V * [1.1, 0.9, 1.2]
    program, _ = compiled(cloth_system, moved, v, 0.1, c)
    truth = cloth_system(moved, v, 0.1, c)[0]
    assert abs(program(moved, v, 0.1)[0] - truth).max() <= 1e-12 * abs(truth).max()


def test_numbers_among_what_sums_read():
    places, starts = RANDOM.integers(0, 102, 400), np.arange(0, 400, 8)

    def sums(x):
        number = x[0] * x[1] + x[2] / (x[3] + x[4])
        return np.add.reduceat(np.concatenate([np.sqrt(x), [number, number * x[5]]])[places], starts)

    check_all_stages(sums, np.linspace(1, 2, 100))
