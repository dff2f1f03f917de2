"""Groups: structure, levels, blocks."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.operators import cotan_laplacian
from geoopt.sparse import block_array, from_diagonal, from_triplets
from geoopt.template import operations

from .conftest import SMALL_MESHES
from .test_stages import check_all_stages


def stage(name, function, *arguments, **options):
    found = {}
    geoopt.compile(function, *arguments, options=geoopt.Options(**options), watch=found.__setitem__)
    return found[name]


def test_a_level_is_the_longest_path():
    """n = a + b and m = n + c have one shape; with shortest paths they could share a group (see the paper)."""
    index = np.array([0, 0, 1, 1])

    def chain(a, b, c):
        n = (a + b)[index]
        m = (np.sqrt(n) + c[index])[index]
        return np.sqrt(m), n

    x = np.ones(4)
    cut = stage("decompose", chain, x, x, x, t_complexity=0, t_ref=1)
    for i in cut.stored:
        node = cut.graph.nodes[i]
        for operand in node.operands:
            for target in cut.graph.nodes_of(operand):
                if target.index in cut.stored and operand.base is not None:
                    assert cut.levels[target.index] < cut.levels[i]


@pytest.mark.parametrize("name", ["icosphere", "torus", "bumpy"])
def test_cotan_on_a_closed_mesh_has_three_groups(name):
    """One block per face, and two sums over one-rings whatever the valence, of which one writes the rows of L."""
    V, F = SMALL_MESHES[name]()
    groups = stage("group", cotan_laplacian, V, F).groups
    assert sorted((g.size, len(g.roots), g.level) for g in groups) == sorted(
        [(len(F), 4, 1), (len(V), 1, 2), (len(V), 1, 2)]
    )


def test_equal_sums_are_one_member_written_twice():
    def weights(x, F):
        W = from_triplets(F[:, [1, 2, 0]], F[:, [2, 0, 1]], np.sqrt(x), (F.max() + 1,) * 2)
        return W + W.T

    _, F = SMALL_MESHES["torus"]()
    last = stage("group", weights, np.ones(F.shape), F).groups[-1]
    assert last.size == len(F) * 3 // 2 and len(last.roots[0].writes) == 2  # W[i, j] and W[j, i]


def ones_and_roots(x, at, size):
    """Ones, but for some entries."""
    zeros = np.delete(np.arange(size), at)
    order = np.argsort(np.concatenate([at, zeros]), kind="stable")
    return np.concatenate([np.sqrt(x), np.ones(len(zeros))])[order]


@pytest.mark.parametrize(
    ("at", "groups"),
    [
        (np.arange(2, 600, 6), [(100, 6), (2, 1)]),  # five beside each, and two at the end
        (np.arange(0, 600, 3), [(200, 3), (2, 1)]),
        (np.arange(5, 600, 9), [(67, 6), (200, 1)]),  # the last has only two after it
        (np.append(np.arange(0, 300, 5), np.arange(302, 602, 5)), None),
        (np.arange(0, 602, 2), None),  # each belongs to one only
    ],
)
def test_constants_are_written_by_those_beside_them(at, groups):
    size = 602
    x = np.random.default_rng(0).uniform(1, 2, len(at))
    check_all_stages(ones_and_roots, x, at, size)
    found = stage("group", ones_and_roots, x, at, size).groups
    if groups:
        assert sorted((g.size, sum(len(r.writes) for r in g.roots)) for g in found) == sorted(groups)


def test_constants_that_others_add_to_are_there_before_whoever_writes_beside_them():
    """Every second row is a diagonal that takes longest to compute; what is beside it starts as zero."""
    V, F = SMALL_MESHES["torus"]()

    def function(V, F):
        p = V[F]
        values = np.sin(p)[:, :, None, :] * np.cos(p)[:, None, :, :]
        at = 3 * F[:, :, None] + np.arange(3)
        i = np.broadcast_to(at[:, :, None, :], values.shape)
        K = from_triplets(i, i.swapaxes(1, 2), values, (V.size, V.size))
        late = from_diagonal(np.sqrt(1 + np.sum(np.sqrt(1 + np.sum(V * V, axis=1)))) * V.ravel())
        order = np.arange(2 * V.size).reshape(2, -1).T.ravel()
        return block_array([[K, None], [None, late]])[order, :][:, order]

    check_all_stages(function, V, F, assembly="scatter")
    program = geoopt.compile(function, V, F, options=geoopt.Options(assembly="scatter"))
    assert any(k.added for k in program.plan.kernels)
    np.testing.assert_allclose(program(V).toarray(), function(V, F).toarray(), rtol=1e-12, atol=1e-12)


def test_without_blocks_every_intermediate_has_its_own_kernel():
    V, F = SMALL_MESHES["torus"]()
    groups = stage("group", cotan_laplacian, V, F, blocks=False).groups
    assert sum(g.size == len(F) for g in groups) == 3  # half cotangents, thirds of areas, and the areas both read


def test_sums_of_different_structure_are_different_groups():
    rows = np.array([0, 0, 1, 1, 2])

    def f(x, y):
        return geoopt.sparse.from_triplets(rows, rows, np.concatenate([np.sqrt(x[:2]), y[:3]]), (3, 3)).data

    assert len(stage("group", f, np.ones(3), np.ones(3)).groups) == 3


def test_a_component_of_a_stack_stays_in_its_element():
    """Every column of the stack lists its ids, and still element i of it is element i of what was stacked."""

    def f(x):
        length = np.sqrt(x[:, 0] * x[:, 1] + 1)
        stacked = np.stack([-x[:, 0] / length, length, x[:, 2]], axis=-1)
        first, second = stacked[:, 0], stacked[:, 1]
        return length, first * x[:, 1] + second * x[:, 2], first * x[:, 2] - second * x[:, 0]

    groups = stage("group", f, np.ones((50, 3)))
    assert not groups.cut.stored and [len(g.roots) for g in groups.groups] == [3]


def test_values_that_outputs_read_several_times_are_computed_once():
    again = np.array([0, 3, 1, 3, 2, 3, 0])
    function = lambda x: np.sqrt(x)[again]  # noqa: E731
    groups = stage("group", function, np.arange(5.0)).groups
    assert sorted((g.size, len(g.roots[0].writes)) for g in groups) == [(1, 2), (1, 3), (2, 1)]
    x = np.array([4.0, 9, 16, 25, 36])
    np.testing.assert_array_equal(geoopt.compile(function, x)(x), np.sqrt(x)[again])


def test_values_that_outputs_read_equally_often_stay_with_their_elements():
    """The block of an edge of a network of springs is an entry and its mirror image."""
    V, F = SMALL_MESHES["torus"]()
    i, j = F[:, 0], F[:, 1]

    def blocks(V):
        d = V[j] - V[i]
        K = d[:, :, None] * d[:, None, :] / np.sum(d * d, axis=1)[:, None, None]
        return np.concatenate([K, K])[np.random.default_rng(0).permutation(2 * len(F))]

    (only,) = stage("group", blocks, V).groups
    assert only.size == len(F) and [len(root.writes) for root in only.roots] == [2] * 9
    np.testing.assert_allclose(geoopt.compile(blocks, V)(V), blocks(V), rtol=1e-13)


def test_what_a_sum_reads_of_an_element_is_one_kernel():
    """Also where every value is read once and comes from a node of its own."""
    V, F = SMALL_MESHES["torus"]()

    def forces(x):
        a, b = x[F[:, 1], 0] - x[F[:, 0], 0], x[F[:, 2], 1] - x[F[:, 0], 1]
        shared = np.exp(a * b) / (1 + a * a)
        return np.bincount(F.T.ravel(), np.concatenate([shared * a, shared * b, shared - a]), len(x))

    groups = stage("group", forces, V).groups
    assert [len(g.roots) for g in groups if g.size == len(F)] == [3]
    np.testing.assert_allclose(geoopt.compile(forces, V)(V), forces(V), rtol=1e-12, atol=1e-13)


def test_kernels_that_gather_the_same_elements_are_one():
    """Two results that share nothing but the vertices they read, and a third that reads others."""
    V, F = SMALL_MESHES["torus"]()

    def sizes(V):
        a, b, c = (V[F[:, k]] for k in range(3))
        return np.sum((b - a) ** 2, axis=1), np.sqrt(np.sum((c * b) ** 2, axis=1)), V[F[:, 0][::-1]].sum(axis=1)

    groups = stage("group", sizes, V).groups
    assert sorted(len(g.roots) for g in groups) == [1, 2]
    np.testing.assert_allclose(geoopt.compile(sizes, V)(V)[1], sizes(V)[1], rtol=1e-13)


@pytest.mark.parametrize(("rare", "groups"), [(5, 1), (40, 2)])
def test_values_that_few_places_want_join_those_that_many_want(rare, groups):
    """Of 100 values some are wanted once, the others twice: a place written again is cheaper than a kernel."""
    wanted = np.random.default_rng(0).permutation(np.concatenate([np.arange(100), np.arange(rare, 100)]))

    def function(x):
        return np.exp(x)[wanted]

    found = stage("group", function, np.ones(100))
    assert [g.size for g in found.groups] == ([100] if groups == 1 else [rare, 100 - rare])
    places = np.concatenate([w.position.to_array() for g in found.groups for r in g.roots for w in r.writes])
    assert len(places) == len(wanted) + (rare if groups == 1 else 0) and len(np.unique(places)) == len(wanted)
    x = np.random.default_rng(1).random(100)
    np.testing.assert_allclose(geoopt.compile(function, x)(x), function(x), rtol=1e-15)
    assert len(stage("group", function, x, without={"memory"}).groups) == 2


@pytest.mark.parametrize("count", [60, 5000])
def test_values_that_read_the_same_elements_are_one_kernel(count):
    """What is equal in both by algebra is computed once."""

    def twice(x, y, z, w):
        return 2 * (x + y) * (z + w), 2 * x * z + (2 * z + 2 * w) * y + x * w + w * x

    given = np.random.default_rng(0).random((4, count))
    program = geoopt.compile(twice, *given)
    [kernel] = program.plan.kernels
    assert operations(list(kernel.roots)) == 4 and [len(places) for places in kernel.writes] == [2]
    for got, want in zip(program(*given), twice(*given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_of_many_values_that_read_the_same_few_are_one_kernel():
    """To write all of them at once would take longer than to read what is in cache."""

    def many(x):
        return tuple((x + k) * (x - 2 * k) for k in range(40))

    groups = stage("group", many, np.ones(100)).groups
    assert sum(len(g.roots) for g in groups) == 40 and max(len(g.roots) for g in groups) <= 16 and len(groups) < 10


def test_values_of_different_elements_stay_apart():
    def halves(x, y):
        return x[:50] + y, x[50:] * y

    x = np.ones(100)
    assert len(stage("group", halves, x, x[:50]).groups) == 1  # both read y
    assert len(stage("group", lambda x, y: (x[:50] + y[:50], x[50:] * y[50:]), x, x).groups) == 2
