"""Loops over elements, as users write them: as many nodes and kernels for 8 elements as for any number of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import geoopt
from geoopt.lift import lifted
from geoopt.trace import trace

COUNTS = (8, 9, 20)


def strip(n):
    """n triangles side by side: positions (n + 2, 3), triangles (n, 3)."""
    corners = np.arange(n)[:, None] + np.where(np.arange(n)[:, None] % 2 == 0, [0, 1, 2], [1, 0, 2])
    return np.random.default_rng(n).normal(size=(n + 2, 3)), corners


def chain(n):
    """n tetrahedra in a row: positions (n + 3, 3), tetrahedra (n, 4)."""
    return np.random.default_rng(n).normal(size=(n + 3, 3)), np.arange(n)[:, None] + np.arange(4)


def rows_of_arrays(V, F):
    return np.array([V[i] * 2 + V[i + 1] for i in range(len(F))])


def coordinates_in_front(V, F):
    x = V.T
    return np.stack([x[:, i] * x[:, i + 1] for i in range(len(F))])


def normals(V, F):
    N = np.zeros((len(F), 3))
    for f, (a, b, c) in enumerate(F):
        normal = np.cross(V[b] - V[a], V[c] - V[a])
        N[f] = normal / np.linalg.norm(normal)
    return N


def vertex_normals(V, F):
    N = np.zeros_like(V)
    for a, b, c in F:
        normal = np.cross(V[b] - V[a], V[c] - V[a])
        N[a] += normal
        N[b] += normal
        N[c] += normal
    return N / np.linalg.norm(N, axis=1)[:, None]


def area(V, F):
    total = 0.0
    for a, b, c in F:
        total += np.linalg.norm(np.cross(V[b] - V[a], V[c] - V[a])) / 2
    return total


def moments(V, F):
    """A total of 3×3 matrices."""
    total = np.zeros((3, 3))
    for a, b, c in F:
        d = (V[a] + V[b] + V[c]) / 3
        total += np.outer(d, d)
    return total


def plane_stress(V, F):
    """The dense stiffness matrix of triangles in the plane."""
    X, young, poisson = V[:, :2], 2.0, 0.3
    D = young / (1 - poisson**2) * np.array([[1, poisson, 0], [poisson, 1, 0], [0, 0, (1 - poisson) / 2]])
    K = np.zeros((2 * len(X), 2 * len(X)))
    for t in F:
        (x1, y1), (x2, y2), (x3, y3) = X[t[0]], X[t[1]], X[t[2]]
        area = 0.5 * ((x2 - x1) * (y3 - y1) - (x3 - x1) * (y2 - y1))
        B = [[y2 - y3, 0, y3 - y1, 0, y1 - y2, 0], [0, x3 - x2, 0, x1 - x3, 0, x2 - x1]]
        B = np.array([*B, [x3 - x2, y2 - y3, x1 - x3, y3 - y1, x2 - x1, y1 - y2]]) / (2 * area)
        d = np.array([[2 * i, 2 * i + 1] for i in t]).ravel()
        K[np.ix_(d, d)] += area * B.T @ D @ B
    return K


def stiffness_of_triplets(V, T):
    """The Laplacian of tetrahedra from lists of triplets."""
    rows, cols, values = [], [], []
    for t in T:
        G = np.linalg.inv(np.stack([V[t[k]] - V[t[0]] for k in (1, 2, 3)], axis=1))
        B = np.vstack([-G.sum(axis=0), G])
        K = B @ B.T
        for a in range(4):
            for b in range(4):
                rows.append(t[a])
                cols.append(t[b])
                values.append(K[a, b])
    return sp.coo_matrix((values, (rows, cols)), shape=(len(V), len(V))).tocsr()


def trusses(V, F):
    K = np.zeros((3 * len(V), 3 * len(V)))
    for i in range(len(F)):
        d = V[i + 1] - V[i]
        length = np.linalg.norm(d)
        k = np.outer(d / length, d / length) / length
        a, b = slice(3 * i, 3 * i + 3), slice(3 * i + 3, 3 * i + 6)
        K[a, a] += k
        K[b, b] += k
        K[a, b] -= k
        K[b, a] -= k
    return K


def cotangents(V, F):
    """A dictionary of sums over corners."""
    L: dict = {}
    for f in F.tolist():
        for k in range(3):
            i, j, o = f[k], f[(k + 1) % 3], f[(k + 2) % 3]
            u, v = V[i] - V[o], V[j] - V[o]
            w = 0.5 * np.dot(u, v) / np.linalg.norm(np.cross(u, v))
            for key, sign in (((i, j), 1), ((j, i), 1), ((i, i), -1), ((j, j), -1)):
                L[key] = L.get(key, 0) + sign * w
    keys = sorted(L)
    return sp.csr_matrix(([L[k] for k in keys], tuple(zip(*keys, strict=True))), shape=(len(V), len(V)))


def strain_matrices(V, T):
    """The dense stiffness of linear elasticity: Bᵀ D B with a D that all tetrahedra share."""
    D, K = np.diag([2.0, 2, 2, 1, 1, 1]) + 0.7 * np.pad(np.ones((3, 3)), (0, 3)), np.zeros((V.size, V.size))
    for t in T:
        edges = np.column_stack([V[t[1]] - V[t[0]], V[t[2]] - V[t[0]], V[t[3]] - V[t[0]]])
        inverse, B = np.linalg.inv(edges), np.zeros((6, 12))
        for a, (x, y, z) in enumerate([-inverse.sum(axis=0), *inverse]):
            B[0, 3 * a], B[1, 3 * a + 1], B[2, 3 * a + 2] = x, y, z
            B[3, 3 * a], B[3, 3 * a + 1], B[4, 3 * a + 1] = y, x, z
            B[4, 3 * a + 2], B[5, 3 * a], B[5, 3 * a + 2] = y, z, x
        at = (3 * t[:, None] + np.arange(3)).ravel()
        K[np.ix_(at, at)] += np.linalg.det(edges) / 6 * (B.T @ D @ B)
    return K


def strain_energy(V, T):
    """Over tetrahedra, each with known numbers of its own."""
    total = 0.0
    for k, t in enumerate(T):
        rest = np.eye(3) + 0.1 * np.arange(9).reshape(3, 3) * np.sin(k)
        deformation = np.column_stack([V[t[1]] - V[t[0]], V[t[2]] - V[t[0]], V[t[3]] - V[t[0]]]) @ rest
        total += np.trace(deformation.T @ deformation) - 3 + (np.linalg.det(deformation) - 1) ** 2
    return total


def one_loop_after_another(V, F):
    normals = [np.cross(V[b] - V[a], V[c] - V[a]) for a, b, c in F]
    pairs = itertools.pairwise(normals)
    return np.array([m @ n / (np.linalg.norm(m) * np.linalg.norm(n)) for m, n in pairs])


def numbers(V, F):
    """Scalars only."""
    total = 0.0
    for i in range(len(F)):
        total += (V[i + 1, 0] - V[i, 0]) ** 2 / 2 + np.cos(V[i, 1])
    return total


LOOPS = {
    strip: [
        *(rows_of_arrays, coordinates_in_front, normals, vertex_normals, area, moments, plane_stress, trusses),
        *(cotangents, one_loop_after_another, numbers),
    ],
    chain: [stiffness_of_triplets, strain_energy, strain_matrices],
}
CASES = [(loop, mesh) for mesh, loops in LOOPS.items() for loop in loops]


def dense(x):
    return x.toarray() if sp.issparse(x) else x


@pytest.mark.parametrize("loop, mesh", CASES, ids=lambda case: getattr(case, "__name__", None))
def test_nodes_and_kernels_do_not_depend_on_the_number_of_elements(loop, mesh):
    found = set()
    for n in COUNTS:
        V, elements = mesh(n)
        program = geoopt.compile(loop, V, elements)
        found.add((len(lifted(trace(loop, (V, elements))[0]).graph.nodes), len(program.plan.kernels)))
        np.testing.assert_allclose(dense(program(V)), dense(loop(V, elements)), rtol=1e-9, atol=1e-11)
    assert len(found) == 1 and max(found)[1] <= 10


@pytest.mark.parametrize(
    "loop, mesh, counts", [(stiffness_of_triplets, chain, (20, 90)), (rows_of_arrays, strip, (20, 600))]
)
def test_where_tracing_changes_to_the_tape_nothing_else_changes(loop, mesh, counts):
    """From so many nodes on short vectors are recorded number by number."""
    nodes = set()
    for n in counts:
        traced, _ = trace(loop, mesh(n))
        assert traced.graph.is_loop == (n > 20)
        nodes.add(len(lifted(traced).graph.nodes))
    assert len(nodes) == 1


@pytest.mark.parametrize("loop, mesh", CASES, ids=lambda case: getattr(case, "__name__", None))
def test_how_often_the_tape_is_packed_changes_nothing(loop, mesh, monkeypatch):
    V, elements = mesh(40)
    whole = str(lifted(trace(loop, (V, elements))[0]))
    monkeypatch.setattr(geoopt.graph, "PACKED", 7)
    assert str(lifted(trace(loop, (V, elements))[0])) == whole


BINARY = [
    np.add,
    np.subtract,
    np.multiply,
    np.cross,
    lambda u, v: u / np.sqrt(1 + v @ v),
    lambda u, v: np.outer(u, v) @ u,
]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(BINARY), st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=6))
def test_any_body_of_a_loop(steps):
    def loop(V, F):
        out, sums = [], np.zeros_like(V)
        for t in F:
            values = [V[t[0]], V[t[1]] - V[t[0]], V[t[2]] * 0.5]
            for function, i, j in steps:
                values.append(function(values[i % len(values)], values[j % len(values)]))
            out.append(values[-1])
            sums[t[1]] += values[-2]
        return np.array(out), sums

    found = set()
    for n in (8, 14):
        V, F = strip(n)
        traced, _ = trace(loop, (V, F))
        found.add(len(lifted(traced).graph.nodes))
        for got, want in zip(geoopt.compile(loop, V, F)(V), loop(V, F), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    assert len(found) == 1


def unrolled(A):
    """Many values of few elements, of the same structure."""
    return np.linalg.inv(A[:, :3, :3]), np.linalg.det(A)


def polynomials(A):
    x = A[:, 0]
    return sum(c * x**k for k, c in enumerate((1.0, 0.5, -0.3, 0.2, 0.7)))


def steps_of_time(A):
    x, v = A[:, 0], A[:, 1]
    for _ in range(50):
        v = v - 0.01 * x
        x = x + 0.01 * v
    return x


@pytest.mark.parametrize("function", [unrolled, polynomials, steps_of_time])
@pytest.mark.parametrize("count", [1, 4, 12])
def test_values_of_few_elements_are_no_elements(function, count):
    A = np.random.default_rng(0).normal(size=(count, 6, 6)) + 3 * np.eye(6)
    traced, _ = trace(function, (A,))
    assert lifted(traced) is traced
