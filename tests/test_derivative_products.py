"""`vjp` and `jvp`: equal to differences and to each other, of results of any form, composed in every way."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.meshes import bumpy, icosphere
from geoopt.operators import cotan_laplacian, spring_energy, vertex_normals
from geoopt.solvers.solve import solve

from .cases_operators import case
from .test_derivatives import E, L, V, noise, normals

RNG = np.random.default_rng(5)
STEP = 1e-5


@dataclasses.dataclass
class Shape:
    lengths: np.ndarray
    matrix: Any
    name: str = "shape"


def everything(x):
    """Arrays, a number, a matrix, what is known and what is compared, in parts of parts."""
    d = np.linalg.norm(x[E[:, 0]] - x[E[:, 1]], axis=1)
    matrix = sp.csc_array((d * d, (E[:, 0], E[:, 1])), shape=(len(x), len(x)))
    filled = np.zeros(len(x))
    filled[::2] = x[::2, 0] ** 2
    return {"a": (d, d.sum()), "b": Shape(np.sin(d), matrix), "c": [np.ones(3), x[:, 0] > 0, 4, filled]}


def arrays(result) -> list[np.ndarray]:
    """The numbers of a result that vary, in one order."""
    if isinstance(result, dict):
        return [a for part in result.values() for a in arrays(part)]
    if isinstance(result, tuple | list):
        return [a for part in result for a in arrays(part)]
    if dataclasses.is_dataclass(result):
        return [a for f in dataclasses.fields(result) for a in arrays(getattr(result, f.name))]
    if sp.issparse(result):
        return [sp.csr_array(result).toarray()]
    is_float = isinstance(result, float | np.ndarray) and np.asarray(result).dtype.kind == "f"
    return [np.asarray(result)] if is_float else []


def difference(function, x, direction):
    """Of results, along a direction."""
    up, down = (arrays(function(x + sign * STEP * direction)) for sign in (1, -1))
    return [(a - b) / (2 * STEP) for a, b in zip(up, down, strict=True)]


def like(result):
    """Cotangents for a result."""
    if isinstance(result, dict):
        return {key: like(part) for key, part in result.items()}
    if isinstance(result, tuple | list):
        return type(result)(map(like, result))
    if dataclasses.is_dataclass(result):
        return dataclasses.replace(
            result, **{f.name: like(getattr(result, f.name)) for f in dataclasses.fields(result)}
        )
    if sp.issparse(result):
        found = result.copy()
        found.data = RNG.normal(size=found.data.shape)
        return found
    is_float = isinstance(result, float | np.ndarray) and np.asarray(result).dtype.kind == "f"
    return RNG.normal(size=np.shape(result)) if is_float else result


def inner(a, b) -> float:
    return sum(float(np.sum(x * y)) for x, y in zip(arrays(a), arrays(b), strict=True))


def test_results_of_any_form():
    direction, cotangents = noise(V), like(everything(V))
    product = geoopt.jvp(everything)(V, direction)
    assert isinstance(product["b"].matrix, sp.csc_array) and product["b"].name == "shape" and product["c"][2] == 4
    for got, want in zip(arrays(product), difference(everything, V, direction), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    slope = geoopt.vjp(everything)(V, cotangents)
    assert slope.shape == V.shape
    assert inner(slope, direction) == pytest.approx(inner(cotangents, product), rel=1e-10)


def test_parts_that_are_left_out_have_no_weight():
    weights = RNG.normal(size=len(E))
    some = {"a": (weights, None), "b": None, "c": None}
    alone = geoopt.vjp(lambda x: everything(x)["a"][0])(V, weights)
    np.testing.assert_allclose(geoopt.vjp(everything)(V, some), alone, rtol=1e-12, atol=1e-14)


OPERATORS = ("cotan_laplacian", "vertex_normals", "gradient", "dual_laplacian", "cloth_system", "polar_rotation", "L³")


@pytest.mark.parametrize("name", OPERATORS)
def test_of_operators_one_is_the_transpose_of_the_other(name):
    function, arguments = case(name)
    x = arguments[0]
    varies = x.data if sp.issparse(x) else x
    tangent = RNG.normal(size=varies.shape)
    along = sp.csr_array((tangent, x.indices, x.indptr), x.shape) if sp.issparse(x) else tangent
    cotangents = like(function(*arguments))
    product = geoopt.jvp(function)(*arguments, along)
    slope = geoopt.vjp(function)(*arguments, cotangents)
    slope = slope.data if sp.issparse(slope) else slope
    assert np.sum(slope * tangent) == pytest.approx(inner(cotangents, product), rel=1e-7)


def test_as_the_jacobian():
    J = geoopt.jacobian(normals)(V)
    tangent, cotangent = noise(V), noise(V, seed=2)
    np.testing.assert_allclose(geoopt.jvp(normals)(V, tangent).ravel(), J @ tangent.ravel(), rtol=1e-10, atol=1e-12)
    product = geoopt.vjp(normals)(V, cotangent)
    np.testing.assert_allclose(product.ravel(), cotangent.ravel() @ J, rtol=1e-10, atol=1e-12)


def test_several_arguments():
    def function(x, k, y):
        return k * np.sin(x) * y

    x, y, dx, dk = V, np.exp(V), noise(V), 0.7
    got = geoopt.jvp(function, ("x", 1))(x, 2.0, y, (dx, dk))
    np.testing.assert_allclose(got, 2 * np.cos(x) * y * dx + dk * np.sin(x) * y, rtol=1e-12)
    for_x, for_k = geoopt.vjp(function, (0, 1))(x, 2.0, y, dx)
    np.testing.assert_allclose(for_x, 2 * np.cos(x) * y * dx, rtol=1e-12)
    assert for_k == pytest.approx(np.sum(np.sin(x) * y * dx))


def test_composed_they_are_second_derivatives():
    def energy(x):
        return spring_energy(x, E, np.full(len(E), 0.4), 3.0)

    H, direction = geoopt.hessian(energy)(V), noise(V)
    want = (H @ direction.ravel()).reshape(V.shape)
    slope = geoopt.gradient(energy)
    for product in (geoopt.jvp(slope), geoopt.vjp(slope), geoopt.jvp(lambda x: geoopt.vjp(energy)(x, 1.0))):
        np.testing.assert_allclose(product(V, direction), want, rtol=1e-9, atol=1e-10)
    twice = geoopt.jvp(lambda x: geoopt.jvp(energy)(x, direction))(V, direction)
    assert twice == pytest.approx(np.sum(direction * want))


def test_slopes_of_matrices_lie_on_their_patterns():
    x, w = RNG.normal(size=(2, len(V)))

    def twice(A, x):
        return A @ (A @ x)

    slope, _ = geoopt.vjp(twice, (0, 1))(L, x, w)
    assert isinstance(slope, sp.csr_array) and (slope.indices == L.indices).all()
    dense = np.outer(w, L @ x) + np.outer(L.T @ w, x)
    np.testing.assert_allclose(slope.toarray(), np.where(L.toarray() != 0, dense, 0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(geoopt.jvp(twice)(L, x, L), 2 * twice(L, x), rtol=1e-12)
    assert (geoopt.gradient(lambda A: A.sum())(L).data == 1).all()
    compiled = geoopt.compile(geoopt.vjp(twice), L, x, w)
    np.testing.assert_allclose(compiled(L, x, w).toarray(), slope.toarray(), rtol=1e-12, atol=1e-14)


def test_through_a_solution():
    V, faces = icosphere(42)

    def harmonic(x):
        L, M = cotan_laplacian(x, faces)
        return solve(M - 0.1 * L, M @ x)

    x = V + noise(V, 0.02)
    tangent, cotangent = noise(x), noise(x, seed=3)
    product = geoopt.compile(geoopt.jvp(harmonic), x, tangent)(x, tangent)
    np.testing.assert_allclose(product, difference(harmonic, x, tangent)[0], rtol=1e-5, atol=1e-7)
    slope = geoopt.compile(geoopt.vjp(harmonic), x, cotangent)(x, cotangent)
    assert np.sum(slope * tangent) == pytest.approx(np.sum(cotangent * product), rel=1e-8)


def test_second_derivatives_through_a_solution():
    V, faces = icosphere(12)

    def energy(x):
        L, M = cotan_laplacian(x, faces)
        return (solve(M - 0.1 * L, M @ x) ** 2).sum()

    x = V + noise(V, 0.02)
    direction, slope = noise(x), geoopt.gradient(energy)
    want = difference(slope, x, direction)[0]
    for product in (geoopt.jvp(slope), geoopt.vjp(slope)):  # of the systems of both the matrix and its transpose
        np.testing.assert_allclose(product(x, direction), want, rtol=1e-5, atol=1e-6)


def test_code_may_write_to_its_arguments():
    def function(x):
        x[0] = 2 * x[0]
        return x * x

    x, one = np.array([1.0, 2.0]), np.ones(2)
    for product in (geoopt.jvp(function), geoopt.vjp(function)):
        np.testing.assert_allclose(product(x.copy(), one), [8, 4])
        np.testing.assert_allclose(geoopt.compile(product, x, one)(x, one), [8, 4])


def test_what_is_not_chosen_changes_nothing():
    x = np.array([0.0, 4.0])
    slope = geoopt.jvp(lambda x: np.where(x > 0, np.sqrt(x), 0.0) + np.maximum(x, 3.0))(x, np.array([1.0, 2.0]))
    np.testing.assert_allclose(slope, [0, 2.5])


def test_tangents_may_be_left_out():
    found = geoopt.jvp(lambda x, y: x * y, (0, 1))(V, 2 * V, (None, V))
    np.testing.assert_allclose(found, V * V)
    rows, cols = L.nonzero()
    part = sp.csr_array((np.ones(3), (rows[:3], cols[:3])), shape=L.shape)  # of fewer entries
    np.testing.assert_allclose(geoopt.jvp(lambda A: A @ V[:, 0])(L, part), part @ V[:, 0], atol=1e-15)


def test_compiled_batched_and_on_first_sight():
    x, faces = bumpy(60)
    tangent, product = noise(x), geoopt.jvp(vertex_normals)
    want = product(x, faces, tangent)
    np.testing.assert_allclose(geoopt.compile(product, x, faces, tangent)(x, tangent), want, rtol=1e-10)
    np.testing.assert_allclose(geoopt.jit(product)(x, faces, tangent), want, rtol=1e-10)
    many, tangents = np.stack([x, 1.1 * x]), np.stack([tangent, tangent])
    found = geoopt.compile(geoopt.batched(product, 2), many, faces, tangents)(many, tangents)
    np.testing.assert_allclose(found[0], want, rtol=1e-10)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: geoopt.vjp(normals)(V, V[:3]), geoopt.ShapeError, r"another shape: \(3, 3\) for \(42, 3\)"),
        (lambda: geoopt.vjp(everything)(V, V), geoopt.ArgumentError, "not like the result: array for dict"),
        (lambda: geoopt.vjp(lambda x: (x, x))(V, (V,)), geoopt.ArgumentError, "not like the result"),
        (lambda: geoopt.jvp(normals)(V, V[0]), geoopt.ShapeError, "another shape"),
        (lambda: geoopt.jvp(lambda A: A @ V[:, 0])(L, L @ L), geoopt.ArgumentError, "has entries where"),
        (lambda: geoopt.vjp(normals, 3)(V, V), geoopt.ArgumentError, "names no argument"),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
