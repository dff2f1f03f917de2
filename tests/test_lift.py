"""Scalar-style code: loops over numbers become what array-style code is, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.evaluate import evaluate
from geoopt.lift import lifted
from geoopt.meshes import bumpy, cloth, torus
from geoopt.operators import cotan_laplacian, svd3
from geoopt.sparse import from_diagonal, from_triplets
from geoopt.symbolic.repetition import MANY_NODES
from geoopt.trace import trace

from .conftest import with_unreferenced
from .test_stages import check_all_stages


class Vector:
    """A user's own class: three numbers."""

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, o):
        return Vector(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)

    def norm(self):
        return np.sqrt(self.dot(self))


def cotan_by_loops(V, F):
    """`cotan_laplacian` as a loop over faces and corners that fills dictionaries."""
    n = len(V)
    points = [Vector(V[i, 0], V[i, 1], V[i, 2]) for i in range(n)]
    weights, mass = {}, [0.0] * n
    for face in F.tolist():
        edges = [points[face[c - 1]] - points[face[c - 2]] for c in range(3)]
        double_area = edges[0].cross(edges[1]).norm()
        for c in range(3):
            i, j = face[c - 2], face[c - 1]
            half_cot = -0.5 * edges[c - 2].dot(edges[c - 1]) / double_area
            weights[i, j] = weights.get((i, j), 0) + half_cot
            weights[j, i] = weights.get((j, i), 0) + half_cot
            mass[face[c]] += double_area / 6
    diagonal = [0.0] * n
    for (i, _), weight in weights.items():
        diagonal[i] -= weight
    rows = [i for i, _ in weights] + list(range(n))
    columns = [j for _, j in weights] + list(range(n))
    return from_triplets(rows, columns, [*weights.values(), *diagonal], (n, n)), from_diagonal(mass)


def kernels(function, *arguments):
    plan = geoopt.compile(function, *arguments).plan
    return sorted((k.level, k.size, len(k.roots), k.terms) for k in plan.kernels)


@pytest.mark.parametrize("make", [lambda: bumpy(600), lambda: torus(400)], ids=["bumpy", "torus"])
def test_loops_over_faces_compile_to_the_kernels_of_array_code(make):
    V, F = make()
    assert kernels(cotan_by_loops, V, F) == kernels(cotan_laplacian, V, F)
    check_all_stages(cotan_by_loops, V, F)


def test_boundaries_and_unreferenced_vertices():
    for V, F in (cloth(60), with_unreferenced()):
        program = geoopt.compile(cotan_by_loops, V, F)
        for got, want in zip(program(V), cotan_laplacian(V, F), strict=True):
            assert abs(got - want).max() < 1e-12
        assert len(program.plan.kernels) <= 16


def test_the_number_of_nodes_does_not_depend_on_the_mesh():
    counts = {len(lifted(trace(cotan_by_loops, torus(n))[0]).graph.nodes) for n in (100, 1600)}
    assert len(counts) == 1 and counts.pop() < 60


def test_elements_are_the_faces():
    V, F = bumpy(600)
    graph = lifted(trace(cotan_by_loops, (V, F))[0]).graph
    roots = [n for n in graph.nodes if n.op == "sqrt"]
    assert [n.shape for n in roots] == [(len(F),)]
    assert {n.shape[0] for n in graph.nodes if n.op == "divide"} == {len(F)}


def cotan_by_corners(V, F, corners=lambda f: range(3)):
    """The Laplacian from each corner on its own."""
    entries = {}
    for f, face in enumerate(F.tolist()):
        for c in corners(f):
            i, j, k = face[c], face[c - 2], face[c - 1]
            a, b = [V[j, q] - V[i, q] for q in range(3)], [V[k, q] - V[i, q] for q in range(3)]
            n = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
            weight = 0.5 * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) / np.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
            for row, column, w in ((j, k, weight), (k, j, weight), (j, j, -weight), (k, k, -weight)):
                entries[row, column] = entries[row, column] + w if (row, column) in entries else w
    rows, columns = zip(*entries, strict=True)
    return from_triplets(rows, columns, [*entries.values()], (len(V), len(V)))


def test_corners_that_a_loop_takes_one_by_one_are_values_of_their_face():
    V, F = torus(400)
    program = geoopt.compile(cotan_by_corners, V, F)
    assert abs(program(V) - cotan_laplacian(V, F)[0]).max() < 1e-13
    first = program.plan.kernels[0]
    assert (first.size, len(first.roots)) == (len(F), 3)
    divisions = [n for n in lifted(trace(cotan_by_corners, (V, F))[0]).graph.nodes if n.op == "divide"]
    assert [n.shape for n in divisions] == [(len(F), 3)]
    # in exact arithmetic the three double areas are one
    exact = geoopt.compile(cotan_by_corners, V, F, options=geoopt.Options(assume={"exact", "finite"}))
    assert exact.source("expression").count("sqrt") == 1 < 3 == program.source("expression").count("sqrt")


def test_corners_of_which_some_are_left_out_are_elements_of_their_own():
    V, F = torus(400)
    corners = lambda f: range(2 + (f % 5 > 0))  # noqa: E731
    program = geoopt.compile(lambda V, F: cotan_by_corners(V, F, corners), V, F)
    want = cotan_by_corners(V, F, corners)
    assert abs(program(V) - want).max() < 1e-13
    assert len(program.plan.kernels[0].roots) == 1


def small_vectors(V, F):
    """Loops over faces that compute with short arrays."""
    total, normals = 0.0, []
    for i, j, k in F:
        normal = np.cross(V[j] - V[i], V[k] - V[i])
        normals.append(normal / np.linalg.norm(normal))
        total = total + normal @ normal
    return np.stack(normals), total


def test_short_arrays_in_loops_become_long_nodes():
    V, F = bumpy(600)
    traced = lifted(trace(small_vectors, (V, F))[0])
    assert len(traced.graph.nodes) < 80
    got, want = geoopt.compile(small_vectors, V, F)(V), small_vectors(V, F)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-13)


def vectors(S):
    """Straight code with many operations."""
    return svd3(S, sweeps=8)[0]


def test_straight_code_on_few_elements_stays_array_code():
    S = np.random.default_rng(0).normal(size=(4, 3, 3))
    graph = trace(vectors, (S,))[0].graph
    assert len(graph.nodes) > MANY_NODES and not any(n.op == "scalars" for n in graph.nodes)
    assert [k[1:3] for k in kernels(vectors, S)] == [(4, 9)]


def test_a_loop_is_seen_behind_straight_code_and_in_sums():
    def f(x):
        (start,) = vectors(x[:9].reshape(1, 3, 3))
        return start + sum(np.sin(x[i : i + 3]) for i in range(4000))

    graph = trace(f, (np.random.default_rng(0).normal(size=4002),))[0].graph
    assert any(n.op == "scalars" for n in graph.nodes) and len(graph.nodes) < 5 * MANY_NODES


def one_rings(V, neighbours):
    """A loop over vertices with an inner loop over a varying number of neighbours, then over their results."""
    means = []
    for i, ring in enumerate(neighbours):
        x = y = 0
        for j in ring:
            x += V[j, 0] - V[i, 0]
            y += np.exp(V[j, 1]) * 0.5
        means.append((x / len(ring), y / len(ring)))
    length = [np.sqrt(x * x + y * y + 1) for x, y in means]
    return [length[ring[0]] - length[i] for i, ring in enumerate(neighbours)]


def test_inner_loops_of_varying_length_are_one_sum():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(90, 3))
    neighbours = [rng.choice(90, size=rng.integers(3, 12), replace=False).tolist() for _ in range(90)]
    got = geoopt.compile(one_rings, V, neighbours)(V)
    np.testing.assert_allclose(got, one_rings(V, neighbours), rtol=1e-13, atol=1e-13)
    graph = lifted(trace(one_rings, (V, neighbours))[0]).graph
    assert len(graph.nodes) < 30


def numbers(x, h):
    """Every operation on numbers, constants on both sides, choices, and sums written in any order."""
    a, b = x[0], x[1]
    chosen = np.where((a < b) & (h > 0.1), a + 2, np.maximum(b, 0.3) - a)
    chain = 1.5 - a + b - (h - a) - b * 2 + 0 - chosen
    return {
        "numbers": [a + b, 3 - a, a * 2.0, 1 / b, -a, a**3, 2.0**a, abs(-b), np.arctan2(a, b), 0 * a, 0.0 - a],
        "chain": chain,
        "same": (a + b) + (b + a) + sum([a, b, h]),
        "mixed": np.stack([a, b, chain]) * x[:3],
    }


def test_numbers_mean_what_numpy_computes():
    x, h = np.array([0.3, 0.7, -0.2, 1.1]), 0.25
    got, want = geoopt.compile(numbers, x, h)(x, h), numbers(x, h)
    for name in want:
        np.testing.assert_allclose(np.array(got[name], float), want[name], rtol=1e-14)


def test_lifting_keeps_the_meaning():
    x, h = np.array([0.3, 0.7, -0.2, 1.1]), 0.25
    traced, signature = trace(numbers, (x, h))
    found = lifted(traced)
    assert all(node.tape is None for node in found.graph.nodes)
    for record in (traced, found):
        got = signature.rebuild(evaluate(record, [x, h]))
        np.testing.assert_allclose(np.array(got["numbers"], float), numbers(x, h)["numbers"], rtol=1e-14)


def test_array_code_between_numbers_keeps_its_place():
    def f(x):
        s = [x[i] * x[i] for i in range(len(x))]
        y = np.stack(s) / np.sum(x)
        t = [y[i] + s[i - 1] for i in range(len(x))]
        z = np.sqrt(np.stack(t))[::-1]
        return [z[i] * y[i] for i in range(len(x))]

    x = np.linspace(1, 2, 700)
    np.testing.assert_allclose(geoopt.compile(f, x)(x), f(x), rtol=1e-13)
    assert len(lifted(trace(f, (x,))[0]).graph.nodes) < 12


@pytest.mark.parametrize("function", [np.tanh, lambda x: np.sin(np.clip(x, -2, 2)) + np.exp(np.minimum(x, 1))])
def test_a_negated_sum_may_be_one_term_of_another(function):
    """As in second derivatives of what triangles add to their corners, number by number."""
    triangles = [[1, 2, 4], [1, 4, 2], [0, 3, 0], [1, 4, 3]]

    def energy(x):
        a, sums = function(0.7 * x), [0.0] * len(x)
        for i, j, k in triangles:
            for corner in (i, j, k):
                sums[corner] = sums[corner] + (a[j] - a[i]) * a[k] - 0.7
        return np.sum(np.sin(np.stack([s + 0.5 * b for s, b in zip(sums, a, strict=True)])))

    x = np.random.default_rng(0).uniform(-1, 1, 5)
    slopes = geoopt.gradient(energy)
    wanted = np.stack([(slopes(x + 1e-6 * e) - slopes(x - 1e-6 * e)) / 2e-6 for e in np.eye(5)])
    for hessian in (geoopt.hessian(energy), geoopt.compile(geoopt.hessian(energy), x)):
        np.testing.assert_allclose(hessian(x).toarray(), wanted, atol=1e-7)


def test_dead_numbers_are_dropped():
    def f(x):
        unused = [np.sin(x[i]) for i in range(len(x))]
        return [x[i] + 1 for i in range(len(x))] if unused else None

    graph = lifted(trace(f, (np.ones(40),))[0]).graph
    assert "sin" not in [n.op for n in graph.nodes]


def test_a_thousand_operations_on_one_number():
    def f(x):
        y = x[0]
        for _ in range(1000):
            y = y * 0.5 + x[1]
        return y

    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(geoopt.compile(f, x)(x), f(x), rtol=1e-13)


@pytest.mark.parametrize("count", [5, 5000])
def test_a_small_matrix_made_entry_by_entry_leaves_long_arrays_alone(count):
    """Beside many elements its entries are nodes of one scalar each; every other node and every id stays."""

    def strained(x, young, poisson):
        C = np.zeros((3, 3), like=x)
        for i in range(3):
            for j in range(3):
                C[i, j] = young * (poisson if i != j else 1 - poisson) / (1 + poisson)
        C[2, 2] = np.where(C[2, 2] > C[0, 1], C[2, 2], np.sqrt(2.0))
        return (x * x) @ C

    x = np.random.default_rng(0).normal(size=(count, 3))
    traced, _ = trace(strained, (x, 2.0, 0.3))
    found = lifted(traced)
    few = count > 1000
    assert not any(node.op == "scalars" for node in found.graph.nodes)
    assert (found.graph.size == traced.graph.size) == few
    before, after = ([n for n in t.graph.nodes if n.op != "scalars" and n.shape] for t in (traced, found))
    assert not few or [(n.op, n.shape, n.first) for n in before] == [(n.op, n.shape, n.first) for n in after]
    check_all_stages(strained, x, 2.0, 0.3)
