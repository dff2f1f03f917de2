"""`geoopt.jax`: what its functions take and give, and what they refuse."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax.experimental.sparse import BCOO, BCSR
from jax.test_util import check_grads

import geoopt
import geoopt.jax
from geoopt.operators import cotan_laplacian, surface_area
from geoopt.solvers.multifrontal import Multifrontal

from .cases_differentiable import B, F, L, Parts, V, many_forms, near, twice
from .test_jax import area, laplacian, normals, product, spring

# -- sparse matrices ----------------------------------------------------------------------------------


def test_sparse_results_are_matrices_of_jax():
    found, mass = jax.jit(laplacian)(V)
    assert isinstance(found, BCSR) and isinstance(mass, BCSR) and found.indices_sorted
    near(found.todense(), L.toarray())
    energy = lambda x: x[:, 0] @ (laplacian(x)[0] @ x[:, 0])  # noqa: E731
    check_grads(jax.jit(energy), (V,), 1, ["rev"], 1e-5, 1e-5, 1e-5)
    batch = jax.vmap(laplacian)(np.stack([V, 2 * V]))[1]
    assert batch.n_batch == 1
    near(batch.data[1], 4 * mass.data)
    by_places = geoopt.jax.function(cotan_laplacian, V, F, matrices="bcoo")(V)[0]
    assert isinstance(by_places, BCOO)
    near(by_places.todense(), L.toarray())


def test_matrices_of_every_kind_are_taken():
    want, rows, places = twice(L, B), BCSR.from_scipy_sparse(L), BCOO.from_scipy_sparse(L)
    for matrix in (rows, places, L, sp.csc_array(L), L.data, jnp.asarray(L.data)):
        near(product(matrix, B), want)
    many = BCSR(tuple(jnp.stack([a, a]) for a in (rows.data, rows.indices, rows.indptr)), shape=(2, *rows.shape))
    near(jax.vmap(product, (0, None))(many, B)[1], want)
    for matrix in (rows, places):
        near(jax.jit(product)(matrix, B), want)
        near(geoopt.jax.function(twice, matrix, B)(matrix, B), want)


def test_another_pattern_that_is_seen_too_late_gives_nan():
    rows = BCSR.from_scipy_sparse(L)
    other = BCSR((rows.data, rows.indices[::-1], rows.indptr), shape=rows.shape)
    assert np.isnan(jax.jit(product)(other, B)).all()


# -- values and forms ---------------------------------------------------------------------------------


jax.tree_util.register_dataclass(Parts)


def test_results_have_their_forms():
    x = np.array([1.0, 4.0, 9.0])
    made = geoopt.jax.function(many_forms, x, 2.0)
    for call in (made, jax.jit(made)):
        found = call(x, k=2.0)
        assert isinstance(found["b"], Parts) and isinstance(found["a"], tuple) and found["c"][1] == 4
        near(found["a"][0], 2 * x)
        near(found["b"].lengths, [1, 2, 3])
        assert found["a"][1] == 3 and found["b"].total == 14 and found["c"][0].tolist() == [False, True, True]
        near(found["c"][2].todense(), np.eye(3))
        near(found["d"].todense(), many_forms(x, 2.0)["d"].toarray())


def test_types_are_those_of_the_arrays():
    single = V.astype(np.float32)
    found = jax.jit(jax.grad(area))(single)
    assert found.dtype == np.float32
    near(found, jax.grad(area)(V), 1e-5)
    assert spring(np.ones(3, np.float32), 2.0).dtype == np.float32  # a number of Python's has no type of its own
    assert spring(np.ones(3, np.float32), np.float64(2)).dtype == np.float64
    jax.config.update("jax_enable_x64", False)
    try:
        assert area(V).dtype == jax.jit(area)(V).dtype == np.float32
    finally:
        jax.config.update("jax_enable_x64", True)


def test_branches_are_kept():
    made = geoopt.jax.function(lambda x: x * 2 if x.sum() > 0 else x * x, np.ones(2))
    near(jax.jit(jax.jacrev(made))(np.ones(2)), 2 * np.eye(2))
    near(jax.jit(jax.jacrev(made))(-np.ones(2)), -2 * np.eye(2))


def test_threads_call_at_once():
    call, wrong = jax.jit(lambda x: normals(x) + area(x)), []

    def work(seed):
        x = V * (1 + seed)
        for _ in range(30):
            if not np.allclose(call(x), normals(V) + (1 + seed) ** 2 * area(V)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_go_with_their_functions():
    def used():
        made = geoopt.jax.function(lambda x: x * x, np.ones(3))
        jax.jit(jax.grad(lambda x: made(x).sum()))(np.ones(3))
        return jax.jit(made).lower(np.ones(3)).compile(), weakref.ref(made._flat)

    compiled, freed = used()
    jax.clear_caches()
    gc.collect()
    assert freed() is None
    near(compiled(np.full(3, 2.0)), np.full(3, 4.0))  # what XLA has compiled keeps the one that it runs


def test_results_stay_when_others_come():
    made = geoopt.jax.function(lambda x: (2 * x, x + 1), np.ones(100_000))
    kept = [made(np.full(100_000, float(i))) for i in range(8)]
    for i, (double, next_) in enumerate(kept):
        assert double[0] == double[-1] == 2 * i and next_[0] == next_[-1] == i + 1


# -- what does not fit --------------------------------------------------------------------------------

ROWS = BCSR.from_scipy_sparse(L)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: area(V[:3]), r"'V' has shape \(3, 3\); the function was made for \(12, 3\); .*vmap"),
        (lambda: area(np.ones_like(V, int)), "'V' has dtype int64; give floating-point numbers"),
        (lambda: area(V * 1j), "'V' has dtype complex128"),
        (lambda: area(jnp.asarray(V, jnp.bfloat16)), "bfloat16 is not supported; give float32 or float64"),
        (lambda: area("V"), "'V' is a str; give an array"),
        (lambda: area(V, F), "takes 1 variables"),
        (lambda: product(L.data), "'x' is missing"),
        (lambda: product(L.data, y=B), "'y' is unknown"),
        (lambda: product(BCSR((ROWS.data, ROWS.indices[::-1], ROWS.indptr), shape=L.shape), B), "another pattern"),
        (lambda: product(BCSR.from_scipy_sparse(L @ L), B), f"12, 12.* with {L.nnz} entries: make another function"),
        (lambda: product(L.toarray(), B), "give BCSR or BCOO, or its values"),
        (lambda: geoopt.jax.function(surface_area, F, F), "no argument of surface_area is a variable"),
        (lambda: geoopt.jax.function(V), "takes a function, not a ndarray"),
        (lambda: geoopt.jax.function(surface_area, V, F, matrices="csr"), "choose from 'bcsr', 'bcoo'"),
        (lambda: jax.jit(lambda V: geoopt.jax.function(surface_area, V, F)(V))(V), "an example is traced by JAX"),
        (lambda: geoopt.jax.function(lambda x: None, V)(V), "returns nothing"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(call, words):
    with pytest.raises(geoopt.ArgumentError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_errors_of_a_running_program_come_through():
    made = geoopt.jax.function(geoopt.solve, sp.csr_array(np.ones((3, 3)) + np.eye(3)), np.ones(3))
    with pytest.raises(geoopt.SolverError, match="the matrix is singular"):
        made(np.zeros(9), np.ones(3))
    with pytest.raises(jax.errors.JaxRuntimeError, match="SolverError: the matrix is singular"):
        jax.block_until_ready(jax.jit(made)(np.zeros(9), np.ones(3)))
    near(jax.jit(made)(np.ones(9) + np.eye(3).ravel(), np.ones(3)), np.full(3, 0.25))


def test_other_devices_are_refused():
    with pytest.raises(geoopt.DeviceError, match="computes on the CPU"):
        jax.jit(area).trace(V).lower(lowering_platforms=("cuda",))


def test_without_jax_a_line_says_what_to_install():
    code = "import sys; sys.modules['jax'] = None; import geoopt; geoopt.jax"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert found.splitlines()[-1] == "ImportError: geoopt.jax needs JAX: pip install 'geoopt-compiler[jax]'"


def test_slopes_through_a_system_use_the_factor_of_the_values(monkeypatch):
    def smoothed(x):
        L, M = cotan_laplacian(x, F)
        return geoopt.solve(M - 0.1 * L, M @ x)

    found, factor = [], Multifrontal.factor
    monkeypatch.setattr(Multifrontal, "factor", lambda self, A: (found.append(1), factor(self, A)))
    of_positions = geoopt.jax.function(smoothed, V)
    slope = jax.jit(jax.grad(lambda x: (of_positions(x) ** 2).sum()))
    slope(V)
    found.clear()
    got = slope(1.1 * V)
    assert len(found) == 1
    near(got, geoopt.gradient(lambda x: np.sum(smoothed(x) ** 2))(1.1 * V))
