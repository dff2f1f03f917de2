"""`geoopt.jax`: functions under all of JAX's transformations, beside JAX's own derivatives and beside differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax.experimental.sparse import BCSR
from jax.test_util import check_grads

import geoopt
import geoopt.jax
from geoopt import operators
from geoopt.operators import cotan_laplacian, face_normals, surface_area

from .cases_differentiable import (
    ALL,
    IS_THOROUGH,
    NO_FLOATS,
    TWICE,
    B,
    F,
    L,
    V,
    interpret,
    near,
    operator,
    poisson,
    twice,
    watch_preparation,
    watch_runs,
)
from .cases_operators import variables

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(3)
area = geoopt.jax.function(surface_area, V, F)
laplacian = geoopt.jax.function(cotan_laplacian, V, F)
normals = geoopt.jax.function(face_normals, V, F)
solution = geoopt.jax.function(poisson, V, B)
product = geoopt.jax.function(twice, L, B)
spring = geoopt.jax.function(lambda x, k: k * (np.sqrt((x * x).sum()) - 1) ** 2, np.ones(3), 2.0)


def area_of_jax(x):
    a, b, c = x[F.T]
    return jnp.linalg.norm(jnp.cross(b - a, c - a), axis=1).sum() / 2


def floats(result) -> list:
    """The arrays of floats of a result; of matrices, their values."""
    leaves = jax.tree.leaves(result, is_leaf=lambda part: isinstance(part, BCSR))
    arrays = [leaf.data if isinstance(leaf, BCSR) else jnp.asarray(leaf) for leaf in leaves]
    return [a for a in arrays if jnp.issubdtype(a.dtype, jnp.floating)]


# -- derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_derivatives_of_operators_are_those_of_differences(name, monkeypatch):
    interpret(monkeypatch)
    function, arguments = operator(name)
    prepared = geoopt.jax.function(function, *arguments)
    values = [a.data if sp.issparse(a) else a for a in variables(arguments)]
    order = 2 if name in TWICE or IS_THOROUGH else 1
    check_grads(lambda *values: floats(prepared(*values)), values, order, ["fwd", "rev"], 1e-4, 1e-4, 1e-5)


def test_every_operator_is_among_them():
    covered = {getattr(operator(name)[0], "__name__", "") for name in ALL}
    of_lambda = {"dirichlet_energy"}  # "Dirichlet", of another argument
    assert covered | of_lambda | NO_FLOATS >= {*operators.__all__} and {*ALL} >= TWICE


def test_so_are_those_of_compiled_programs():
    check_grads(jax.jit(normals), (V,), 2, ["fwd", "rev"], 1e-4, 1e-4, 1e-5)
    check_grads(jax.jit(lambda x: laplacian(x)[0].data), (V,), 2, ["rev"], 1e-4, 1e-4, 1e-5)


def test_as_jax_differentiates_the_same():
    tangent = RNG.normal(size=V.shape)
    for how in (jax.value_and_grad, jax.hessian):
        for got, want in zip(*(jax.tree.leaves(jax.jit(how(f))(V)) for f in (area, area_of_jax)), strict=True):
            near(got, want)
    near(*(jax.jit(lambda x, f=f: jax.jvp(jax.grad(f), (x,), (tangent,))[1])(V) for f in (area, area_of_jax)))
    near(jax.hessian(area)(V).reshape(V.size, V.size), geoopt.hessian(surface_area)(V, F).toarray())


def test_by_a_number():
    x, k = jnp.array([3.0, 0.0, 4.0]), jnp.float64(2.0)
    slopes = jax.jit(jax.grad(spring, (0, 1)))(x, k)
    near(slopes[0], 2 * k * 4 * x / 5)
    assert slopes[1].shape == () and np.isclose(slopes[1], 16) and spring(x, 2.0) == 32


def test_through_the_solution_of_a_system():
    check_grads(jax.jit(solution), (V, B), 1, ["rev"], 1e-5, 1e-5, 1e-5)
    near(jax.vmap(solution, (None, 0))(V, np.stack([B, 2 * B]))[1], 2 * poisson(V, B))


def test_by_a_matrix():
    near(jax.jit(product)(L.data, B), twice(L, B))
    check_grads(product, (L.data, B), 2, ["fwd", "rev"], 1e-5, 1e-5)


def test_linear_functions_have_transposes():
    c = RNG.normal(size=len(B))
    (transposed,) = jax.linear_transpose(lambda x: product(L.data, x), B)(c)
    near(transposed, L.T @ (L.T @ c))
    pulled = jax.vjp(area, V)[1]
    (back,) = jax.linear_transpose(lambda c: pulled(c)[0], 1.0)(V)  # of the transpose of the derivative
    near(back, jax.jvp(area, (V,), (V,))[1])

    both = jax.vjp(lambda x: tuple(m.data for m in laplacian(x)), V)[1]
    (back,) = jax.linear_transpose(lambda c: both((c, np.zeros(len(V))))[0], L.data)(V)  # of one result of two
    near(back, jax.jvp(lambda x: laplacian(x)[0].data, (V,), (V,))[1])


def test_products_with_tangents_are_linear_in_them():
    x, k, dx = np.array([1.0, 2.0, 2.0]), 2.0, np.array([0.3, -0.2, 0.5])
    along = lambda dx, dk: jax.jvp(spring, (x, k), (dx, dk))[1]  # noqa: E731
    near(jax.jvp(lambda dx: along(dx, 0.7), (x,), (dx,))[1], along(dx, 0.0))
    near(jax.grad(along, 1)(dx, 0.7), 4)


def test_within_loops_and_with_less_memory():
    def flow(step):
        return lambda x: jax.lax.scan(lambda x, _: (x - 0.1 * jax.grad(area)(x), None), step(x), None, length=3)[0]

    near(jax.jacfwd(flow(lambda x: x))(V), jax.jacrev(flow(jax.checkpoint(lambda x: 1.0 * x)))(V))


def test_grad_runs_one_program_forward_and_one_backward(monkeypatch):
    ran = watch_runs(monkeypatch)
    made = geoopt.jax.function(lambda x, y: (x * x).sum() * y, np.ones(3), 2.0)
    for how in (jax.value_and_grad(made), jax.jit(jax.value_and_grad(made))):
        jax.block_until_ready(how(np.ones(3), 2.0))
        ran.clear()
        value, slope = jax.block_until_ready(how(np.ones(3), 2.0))
        assert value == 6 and np.array_equal(slope, [4, 4, 4])
        assert [r.shapes for r in ran] == [((1,),), ((3,),)]  # nothing is computed for y


def test_derivatives_that_nobody_asks_for_are_not_prepared(monkeypatch):
    prepared = watch_preparation(monkeypatch)
    made = geoopt.jax.function(surface_area, V, F)
    assert not prepared
    made(V), jax.jit(made)(V)
    assert prepared == ["surface_area"]
    jax.grad(made)(V), jax.jit(jax.grad(made))(V)
    assert prepared == ["surface_area", "vjp of surface_area"]
    jax.jvp(lambda tangent: jax.jvp(made, (V,), (tangent,))[1], (V,), (V,))
    assert prepared == ["surface_area", "vjp of surface_area", "jvp of surface_area"]


# -- batches ------------------------------------------------------------------------------------------


def test_batches_are_as_one_by_one():
    many = V + 0.1 * RNG.normal(size=(4, *V.shape))
    near(jax.jit(jax.vmap(normals))(many), np.stack([normals(x) for x in many]), 1e-14)
    near(jax.vmap(normals, 1, 2)(many.swapaxes(0, 1)), np.stack([normals(x) for x in many], axis=2), 1e-14)
    near(jax.vmap(jax.grad(area))(many), np.stack([jax.grad(area)(x) for x in many]), 1e-13)
    twice_many = np.stack([many, 2 * many])
    near(jax.vmap(jax.vmap(area))(twice_many), [[surface_area(x, F) for x in xs] for xs in twice_many])


def test_what_all_items_share_has_the_sum_of_their_slopes():
    x, ks, xs = np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]), RNG.normal(size=(3, 3))
    all_springs = lambda x, k: jax.vmap(spring, (None, 0))(x, k).sum()  # noqa: E731
    for got, want in zip(jax.grad(all_springs, (0, 1))(x, ks), (6 * jax.grad(spring)(x, 1.0), [4, 4, 4]), strict=True):
        near(got, want)
    pairs = jax.vmap(jax.vmap(spring, (None, 0)), (0, None))  # batches of batches, each over another argument
    near(pairs(xs, ks), [[spring(x, k) for k in ks] for x in xs])
    check_grads(pairs, (xs, ks), 2, ["fwd", "rev"])
