"""Programs that solve linear systems: they give what the function gives on floats, factor each matrix once, and their
derivatives are those of the solution."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import bicgstab, cg, factorized, splu, spsolve

import geoopt
from geoopt.errors import ShapeError, SolverError, TracingError, UnsupportedError
from geoopt.evaluate import evaluate
from geoopt.graph.values import Values
from geoopt.meshes import torus
from geoopt.operators import cotan_laplacian
from geoopt.solvers.multifrontal import Multifrontal
from geoopt.trace import trace

RNG = np.random.default_rng(4)
V, F = torus(120)
L, M = cotan_laplacian(V, F)
K: Any = sp.csr_array(M - 0.1 * L)  # symmetric, positive definite
N: Any = sp.csr_array(K + sp.random_array(K.shape, density=0.02, rng=RNG))  # neither
b, B = RNG.normal(size=len(V)), RNG.normal(size=(len(V), 3))


def smoothed(V):
    L, M = cotan_laplacian(V, F)
    return geoopt.solve(M - 0.1 * L, M @ V)


def heat(V):
    """Two systems, of which the second needs the solution of the first."""
    L, M = cotan_laplacian(V, F)
    u = spsolve((M - 0.1 * L).tocsc(), np.eye(len(V))[0])
    return cg(M - L, M @ (u / np.sqrt(u @ u + V[:, 0] ** 2)), rtol=1e-12)[0]


def steps(V, x):
    """Some steps of one system, whose state is what the last step has left."""
    L, M = cotan_laplacian(V, F)
    solve = factorized((M - 0.1 * L).tocsc())
    y = 0.0 * x
    for _ in range(5):
        y = y + 0.3 * x
        x = solve(M @ x) + 0.1 * y
    return x, y


WORK = {
    "larger array": (lambda A, b: np.linalg.solve(A, b), N.toarray()[:30, :30], b[:30]),
    "larger array, columns": (lambda A, B: np.linalg.solve(A, B), N.toarray()[:30, :30], B[:30]),
    "inverse of a larger array": (lambda A: np.linalg.inv(A), N.toarray()[:30, :30]),
    "array with a zero on its diagonal": (
        lambda x: np.linalg.solve(
            np.block([[np.diag(x), np.ones((8, 1))], [np.ones((1, 8)), np.zeros((1, 1))]]), np.arange(9.0)
        ),
        np.arange(1.0, 9.0),
    ),
    "known matrix": (lambda b: spsolve(K.tocsc(), b), b),
    "known right-hand side": (lambda K: spsolve(K.tocsc(), b), K),
    "column": (lambda K, b: spsolve(K.tocsc(), b), K, b[:, None]),
    "columns": (lambda K, B: geoopt.solve(K, B), K, B),
    "older matrix": (lambda K, b: spsolve(K, b), sp.csc_matrix(K), b),
    "factorized": (lambda K, b: factorized(K.tocsc())(b) ** 2, K, b),
    "factors": (lambda N, b: (lambda f: f.solve(b) + f.solve(f.solve(b, "T"), trans="T"))(splu(N.tocsc())), N, b),
    "known factors": (lambda b: (lambda f: f.solve(b, "T") + f.solve(np.ones(len(V))))(splu(N.tocsc())), b),
    "not symmetric": (lambda N, b: spsolve(N.tocsc(), b), N, b),
    "iterative": (lambda N, b: bicgstab(N, b, rtol=1e-13)[0], N, b),
    "filled": (lambda K, b: (lambda r: (r.__setitem__(3, b[0]), spsolve(K.tocsc(), r))[1])(np.zeros(len(V))), K, b),
    "negative": (lambda K, b: geoopt.solve(-K, b), K, b),
    "held": (lambda K, b, v: geoopt.solve(K, b, fixed=[5, 2], values=v), K, b, np.array([1.0, 2.0])),
    "held columns": (lambda K, B: geoopt.solve(K, B, fixed=np.arange(len(V)) < 9, values=B[:9, 0]), K, B),
    "smoothed": (smoothed, V),
    "heat": (heat, V),
    "steps": (steps, V, b),
}


def arrays(result) -> list:
    return list(result) if isinstance(result, tuple) else [result]


def variables(arguments) -> list:
    return [a.tocsr().data if sp.issparse(a) else a for a in arguments]


@pytest.mark.filterwarnings("ignore:.*CSC format")
@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("device", ["cpu", "cuda-on-host"])
def test_programs_give_what_the_function_gives(name, device):
    function, *arguments = WORK[name]
    program = geoopt.compile(function, *arguments, device=device)
    for scale in (1.0, 2.0):  # the second call has other values
        given = [scale * a for a in arguments]
        for got, want in zip(arrays(program(*given)), arrays(function(*given)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore:.*CSC format")
@pytest.mark.parametrize("name", WORK)
def test_graphs_and_phases_mean_it_too(name):
    function, *arguments = WORK[name]
    found: dict[str, Any] = {}
    geoopt.compile(function, *arguments, watch=found.__setitem__)
    _, signature = trace(function, tuple(arguments))
    for stage in ("trace", "lift", "phases"):
        got = arrays(signature.rebuild(evaluate(found[stage], variables(arguments))))
        for g, want in zip(got, arrays(function(*arguments)), strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-9, atol=1e-11, err_msg=stage)
    traced = found["trace"]
    given = dict(zip([v.index for v in traced.variables], variables(arguments), strict=True))
    values = Values(traced.graph, {i: np.ravel(x) for i, x in given.items()})
    for view, want in zip(traced.outputs, arrays(function(*arguments)), strict=True):
        np.testing.assert_allclose(values.of(view), want, rtol=1e-9, atol=1e-11)


def test_single_precision_solves_in_double():
    program = geoopt.compile(smoothed, V, dtype=np.float32)
    got = program(V.astype(np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, smoothed(V), atol=2e-6)


@st.composite
def chains(draw):
    """Sums, products and solutions of what came before."""
    kinds = st.sampled_from(["solve", "other solve", "add", "multiply", "times matrix"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=8))


@given(chains(), st.integers(0, 99))
def test_random_chains_of_solutions(chain, seed):
    rng = np.random.default_rng(seed)
    A: Any = sp.csr_array(sp.random_array((9, 9), density=0.2, rng=rng) + 4 * sp.eye_array(9))
    A = sp.csr_array(A + A.T)

    def function(A, x):
        made: list[Any] = [x, 1 / (1 + x * x)]
        for kind, i, j in chain:
            a, c = made[i % len(made)], made[j % len(made)]
            made.append({
                "solve": lambda a=a: geoopt.solve(A, a),
                "other solve": lambda a=a, c=c: geoopt.solve(A + sp.diags_array(c * c), a),
                "add": lambda a=a, c=c: a + 0.5 * c,
                "multiply": lambda a=a, c=c: a * c,
                "times matrix": lambda a=a: A @ a,
            }[kind]())  # fmt: skip
        return made[-1], made[len(made) // 2]

    x = rng.normal(size=9)
    program = geoopt.compile(function, A, x)
    for got, want in zip(program(A, x), function(A, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9 * (1 + np.abs(want).max()))


# -- what is done how often -----------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """The methods of solvers that are called, in order."""
    found: list[str] = []
    for name in ("analyse", "factor", "solve"):
        method = getattr(Multifrontal, name)
        monkeypatch.setattr(Multifrontal, name, lambda *a, m=method, n=name: (found.append(n), m(*a))[1])
    return found


def test_one_matrix_is_factored_once_per_call(calls):
    program = geoopt.compile(steps, V, b)
    assert calls == ["analyse"]
    program(V, b)
    assert calls[1:] == ["factor"] + 5 * ["solve"]


def test_what_was_factored_last_is_not_factored_again(calls):
    program = geoopt.compile(steps, V, b)
    first = [a.copy() for a in program(V, b)]
    calls.clear()
    for one, two in zip(program(V, 2 * b), steps(V, 2 * b), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)
    assert calls[:5] == 5 * ["solve"]
    calls.clear()
    program(V * [1, 1, 1 + 1e-14], b)
    assert calls.count("factor") == 1
    with pytest.raises(SolverError):
        program(V * [1, 1, np.nan], b)
    for one, two in zip(program(V, b), first, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_matrix_that_does_not_vary_is_factored_while_preparing(calls):
    program = geoopt.compile(lambda b: factorized(K.tocsc())(b), b)
    assert calls == ["analyse", "factor"]
    program(b)
    program(2 * b)
    assert calls[2:] == ["solve", "solve"]
    assert program.report()["solves"][0]["is_constant"] and "factored while preparing" in str(program)


def test_steps_of_a_loop_are_one_program():
    """Whatever their number is: what they have in common is prepared once, and each reads what the last has left."""

    def marched(V, x, count):
        L, M = cotan_laplacian(V, F)
        y = x
        for _ in range(count):
            y = 0.9 * y + x
            x = geoopt.solve(M - 0.1 * L, M @ y)
        return x

    few, many = (geoopt.compile(marched, V, b, count) for count in (6, 12))
    assert len(many.plans) == len(few.plans) <= 5
    assert len(many.report()["solves"]) == 12
    np.testing.assert_allclose(many(V, b), marched(V, b, 12), rtol=1e-9)


def test_threads_of_a_program_solve_and_do_not_change_a_bit():
    programs = [geoopt.compile(steps, V, b, options=geoopt.Options(threads=t)) for t in (1, 2)]
    for program, threads in zip(programs, (1, 2), strict=True):
        [solver] = program.machine.solvers.values()
        assert solver.threads == threads
    for one, two in zip(programs[0](V, b), programs[1](V, b), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_gradient_uses_the_factor_again(calls):
    program = geoopt.compile(geoopt.gradient(lambda V: np.sum(smoothed(V) ** 2)), V)
    calls.clear()
    program(V)
    assert calls == ["factor", "solve", "solve"]


def test_results_may_be_solutions_arguments_or_twice_the_same():
    def function(K, b):
        x = geoopt.solve(K, b)
        return x, b, x, K, x[::-1], np.ones(3)

    x, same, again, matrix, turned, ones = geoopt.compile(function, K, b)(K, b)
    np.testing.assert_allclose(x, geoopt.solve(K, b))
    assert not np.shares_memory(x, again) and not np.shares_memory(same, b)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(turned, x[::-1])
    np.testing.assert_array_equal(same, b)
    np.testing.assert_array_equal(matrix.toarray(), K.toarray())
    np.testing.assert_array_equal(ones, 1.0)


def test_results_are_written_again_and_calls_may_come_at_once():
    program = geoopt.compile(steps, V, b)
    first = program(V, b)
    want = [a.copy() for a in program(1.1 * V, b)]
    assert program(1.1 * V, b, out=first) is first
    for got, array in zip(first, want, strict=True):
        np.testing.assert_array_equal(got, array)
    wrong: list[int] = []

    def call(scale):
        for _ in range(20):
            if not np.allclose(program(V, scale * b)[0], scale * program(V, b)[0]):
                wrong.append(scale)

    threads = [threading.Thread(target=call, args=(scale,)) for scale in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_branches_may_look_at_solutions():
    def function(K, b):
        x = geoopt.solve(K, b)
        return 2.0 * x if x[0] > 0 else geoopt.solve(K, x)

    program = geoopt.compile(function, K, b)
    for right in (b, -b):
        np.testing.assert_allclose(program(K, right), function(K, right), rtol=1e-9)


def test_which_unknowns_are_held_may_vary():
    def function(K, b, height):
        return geoopt.solve(K, b, fixed=height > 0.5, values=height)

    heights = [RNG.uniform(size=len(V)) for _ in range(3)]
    program = geoopt.compile(function, K, b, heights[0])
    for height in heights:
        held = np.flatnonzero(height > 0.5)
        want = geoopt.solve(K, b, fixed=held, values=height[held])
        np.testing.assert_allclose(program(K, b, height), want, rtol=1e-9, atol=1e-12)


def test_singular_systems_are_solved_where_scipy_solves_them_and_there_is_a_solution():
    def shape(V, b):
        x = spsolve(-cotan_laplacian(V, F)[0].tocsc(), b - np.mean(b))
        return x - x[0]

    program = geoopt.compile(shape, V, b)
    x = program(V, b)
    np.testing.assert_allclose(-cotan_laplacian(V, F)[0] @ x, b - b.mean(), atol=1e-10)
    two = sp.csc_array(sp.block_diag([L, L]))  # of two components
    program = geoopt.compile(lambda two, b: splu(two).solve(b), two, np.concatenate([b - b.mean()] * 2))
    right = np.concatenate([b - b.mean(), b.mean() - b])
    np.testing.assert_allclose(two @ program(two, right), right, atol=1e-10)
    with pytest.raises(SolverError, match="no solution for this right-hand side"):
        program(two, right + 1)
    strict = geoopt.compile(lambda V: geoopt.solve(-cotan_laplacian(V, F)[0], b - b.mean()), V)
    with pytest.raises(SolverError, match="singular"):
        strict(V)


def test_scipy_may_be_loaded_by_the_code_itself():
    code = """
import numpy as np, scipy.sparse as sp, sys, geoopt
A = sp.csc_array(np.diag([1.0, 2.0, 4.0]))
def function(A, b):
    from scipy.sparse.linalg import spsolve
    return spsolve(A, b)
assert "scipy.sparse.linalg" not in sys.modules
print(geoopt.compile(function, A, np.ones(3))(A, np.ones(3)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[1.   0.5  0.25]\n"


def test_steep_matrices_are_not_taken_for_symmetric_ones_nor_for_singular_ones():
    for scale in (1e-165, 1.0, 1e200):
        A = sp.csc_array(scale * np.array([[3.0, -1, 0], [-2, 3, -1], [0, -2, 3]]))
        np.testing.assert_allclose(
            geoopt.solve(A, scale * np.ones(3)), np.linalg.solve(A.toarray() / scale, np.ones(3))
        )

    def rod(stiffness):
        """Ends that are held by large numbers on the diagonal, in rows of zeros."""
        A = sp.csr_array(sp.diags_array([-np.ones(5), np.full(6, 2.0), -np.ones(5)], offsets=[-1, 0, 1]) * stiffness)
        right = np.zeros(6)
        for i, value in ((0, 1.0), (5, 6.0)):
            A.data[A.indptr[i] : A.indptr[i + 1]] = 0.0
            right[i] = 1e30 * value
        return spsolve((A + sp.csr_array(([1e30, 1e30], ([0, 5], [0, 5])), shape=(6, 6))).tocsc(), right)

    np.testing.assert_allclose(geoopt.compile(rod, 2.0)(3.0), np.arange(1.0, 7.0))
    rows = sp.csc_array([[1e20, 2e20], [1.0, 1.0]])
    np.testing.assert_allclose(geoopt.solve(rows, np.array([3e20, 2.0])), 1.0)
    turned = geoopt.compile(lambda A, b: splu(A).solve(b, "T"), rows, b[:2])
    np.testing.assert_allclose(turned(rows, np.array([9.0, 13.0])), [4e-20, 5.0])


GUARDED = {
    "matrix": (lambda d, b: spsolve(sp.diags_array(d).tocsc(), b) if np.min(d) > 0 else b, np.ones(40), 0.0 * b[:40]),
    "right-hand side": (
        lambda d, x: x if np.sum(d * d) == 0 else spsolve(K[:40, :40], x / np.sum(d * d)),
        b[:40],
        b[:40],
    ),
    "known": (lambda s, b: b if s > 0 else geoopt.solve(sp.csc_array(np.ones((3, 3))), b), 1.0, b[:3]),
}


@pytest.mark.filterwarnings("ignore:.*CSC format")
@pytest.mark.parametrize("name", GUARDED)
def test_systems_of_paths_that_are_not_taken_may_be_singular(name):
    function, guard, right = GUARDED[name]
    program = geoopt.compile(function, guard, right)
    for value in (guard, 0.0 * guard):
        if name != "known" or value:
            np.testing.assert_allclose(program(value, right), function(value, right), rtol=1e-9)
    if name == "known":
        with pytest.raises(SolverError, match="singular"):
            program(0.0, right)


def test_right_hand_sides_that_are_not_chosen_may_be_infinite():
    def function(x):
        return np.where(x > 0, spsolve(2.0 * sp.eye_array(5, format="csc"), np.ones(5) / x), 0.0)

    x = np.array([1.0, 0.0, 2.0, -1.0, 4.0])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(geoopt.compile(function, x)(x), function(x))


def test_long_chains_before_a_system_are_prepared():
    def function(x):
        v, is_large = x, x > 9
        for i in range(300):
            v = v - 0.01 * x
            x = x + 0.01 * v
            is_large = is_large | (x > 9 + i)
        return geoopt.solve(K, x) + np.where(is_large, v, v * x)

    program = geoopt.compile(function, b)
    np.testing.assert_allclose(program(b), function(b), rtol=1e-9)


def test_solvers_are_found_in_any_place():
    def make():
        from scipy.sparse.linalg import spsolve

        return lambda A, b: spsolve(A, b)

    ways = [
        functools.partial(spsolve, use_umfpack=False),
        {"direct": spsolve}["direct"],
        make(),
        lambda A, b, f=splu: f(A).solve(b),
    ]
    for way in ways:
        np.testing.assert_allclose(
            geoopt.compile(lambda A, b, way=way: way(A.tocsc(), b), K, b)(K, b), geoopt.solve(K, b)
        )
    A = K.tocsc()
    np.testing.assert_array_equal(spsolve(A, b), splu(A).solve(b))  # what was put in their place is gone


def test_lists_are_right_hand_sides():
    for solve in (lambda A, b: cg(A, b)[0], spsolve, geoopt.solve):
        program = geoopt.compile(lambda b, solve=solve: solve(K.tocsc(), [2.0 * b[i] for i in range(len(V))]), b)
        np.testing.assert_allclose(program(b), geoopt.solve(K, 2.0 * b), rtol=1e-8)


def test_values_of_a_mask_may_be_those_of_all_unknowns():
    mask = b > 0.5
    want = geoopt.solve(K, b, fixed=mask, values=b[mask])
    np.testing.assert_array_equal(geoopt.solve(K, b, fixed=mask, values=b), want)
    program = geoopt.compile(lambda b, x: geoopt.solve(K, b, fixed=mask, values=x), b, b)
    np.testing.assert_allclose(program(b, b), want, rtol=1e-9)


def test_derivatives_on_floats_go_through_systems():
    energy = ENERGIES["of the matrix"][0]
    want = geoopt.compile(geoopt.gradient(energy), b)(b)
    np.testing.assert_allclose(geoopt.gradient(energy)(b), want, rtol=1e-8)


# -- derivatives ----------------------------------------------------------------------------------------


ENERGIES = {
    "of the right-hand side": (lambda b: np.sum(geoopt.solve(K, b * b) ** 3), b),
    "of the matrix": (lambda d: np.sum(geoopt.solve(K + sp.diags_array(d * d), b) ** 2), b),
    "of columns": (lambda d: np.sum(geoopt.solve(K + sp.diags_array(d * d), B) ** 2), b),
    "transposed": (lambda d: np.sum(splu((N + sp.diags_array(d * d)).tocsc()).solve(d, "T") ** 2), b),
    "not symmetric": (lambda d: np.sum(spsolve((N + sp.diags_array(d * d)).tocsc(), d) ** 2), b),
    "of positions": (lambda V: np.sum(smoothed(V) ** 2 * (1 + V)), V),
    "of two systems": (lambda V: np.sum(heat(V) ** 2), V),
    "with held unknowns": (lambda b: np.sum(geoopt.solve(K, b, fixed=[1, 4], values=b[:2] ** 2) ** 2), b),
}


@pytest.mark.filterwarnings("ignore:.*CSC format")
@pytest.mark.parametrize("name", ENERGIES)
def test_gradients_are_finite_differences(name):
    energy, x = ENERGIES[name]
    program = geoopt.compile(geoopt.gradient(energy), x)
    d = RNG.normal(size=x.shape)
    slopes = [(energy(x + h * d) - energy(x - h * d)) / (2 * h) for h in (1e-5, 2e-5)]
    want = (4 * slopes[0] - slopes[1]) / 3
    assert np.sum(program(x) * d) == pytest.approx(want, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*CSC format")
@pytest.mark.parametrize("name", ENERGIES)
def test_products_with_hessians_are_finite_differences_of_gradients(name):
    energy, x = ENERGIES[name]
    slope = geoopt.compile(geoopt.gradient(energy), x)
    d, h = RNG.normal(size=x.shape), 1e-5
    got = geoopt.compile(geoopt.hessian_product(energy), x, d)(x, d)
    want = (slope(x + h * d) - slope(x - h * d)) / (2 * h)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_gradients_are_those_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    dense = K.toarray()

    def energy(d):
        matrix = jax.numpy.asarray(dense) + jax.numpy.diag(d * d)
        solve = lambda _, right: jax.numpy.linalg.solve(matrix, right)  # noqa: E731
        x = jax.lax.custom_linear_solve(lambda x: matrix @ x, b, solve, symmetric=True)
        return (x**2).sum()

    got = geoopt.compile(geoopt.gradient(lambda d: np.sum(geoopt.solve(K + sp.diags_array(d * d), b) ** 2)), b)(b)
    np.testing.assert_allclose(got, jax.grad(energy)(b), rtol=1e-8)


def test_matrices_of_second_derivatives_are_refused_where_they_are_dense():
    dense = geoopt.hessian(lambda b: np.sum(geoopt.solve(K, b) ** 2)), geoopt.jacobian(lambda b: geoopt.solve(K, b))
    for derivative in dense:
        with pytest.raises(UnsupportedError, match=r"(?s)are dense.*geoopt.hessian_product"):
            geoopt.compile(derivative, b)


def test_what_is_solved_beside_the_argument_is_constant_to_derivatives():
    def energy(x, c):
        return np.sum(geoopt.solve(K, c) * x**3)

    H = geoopt.compile(geoopt.hessian(energy), b, b)(b, 1 + b)
    np.testing.assert_allclose(H.diagonal(), 6 * b * geoopt.solve(K, 1 + b))
    assert H.nnz == len(b)


# -- what is refused ------------------------------------------------------------------------------------


def test_a_singular_matrix_is_told_in_the_users_numbers_and_nothing_is_written():
    def function(d, b):
        return b + 1.0, geoopt.solve(sp.diags_array(d) + 0.0 * K, b, fixed=[0, 3])

    d = np.ones(len(V))
    program = geoopt.compile(function, d, b)
    first = program(d, b)
    before = [a.copy() for a in first]
    broken = d.copy()
    broken[7] = 0.0
    with pytest.raises(SolverError, match=r"nothing determines unknown 7;"):
        program(broken, 2 * b, out=first)
    for array, old in zip(first, before, strict=True):
        np.testing.assert_array_equal(array, old)
    np.testing.assert_array_equal(program(d, b)[1], before[1])


def test_residuals_are_looked_at_where_that_is_asked_for():
    hilbert: Any = sp.csr_array(1 / (np.arange(9)[:, None] + np.arange(9) + 1.0))
    right = np.linspace(1, 2, 9)
    program = geoopt.compile(lambda A, b: geoopt.solve(A, b, largest_residual=1e-12), hilbert, right)
    np.testing.assert_allclose(program(hilbert, right), geoopt.solve(hilbert, right, largest_residual=1e-12), rtol=1e-6)
    strict = geoopt.compile(lambda A, b: geoopt.solve(A, b, largest_residual=1e-40), hilbert, right)
    for solve in (strict, lambda A, b: geoopt.solve(A, b, largest_residual=1e-40)):
        with pytest.raises(SolverError, match=r"residual of a solution is .* more than 1e-40"):
            solve(hilbert, right)


@pytest.mark.parametrize("place, message", [("d", "row 7 of the matrix has an entry nan"), ("b", "entry nan in row 7")])
def test_what_is_not_finite_is_told(place, message):
    given = {"d": np.ones(len(V)), "b": b.copy()}
    program = geoopt.compile(lambda d, b: geoopt.solve(sp.diags_array(d) + 0.0 * K, b), given["d"], given["b"])
    given[place][7] = np.nan
    with pytest.raises(SolverError, match=message):
        program(**given)


def test_a_known_matrix_that_is_singular_is_told_while_preparing():
    with pytest.raises(SolverError, match="singular"):
        geoopt.compile(lambda b: geoopt.solve(sp.csc_array(np.ones((3, 3))), b), b[:3])


OUTSIDE = splu(K.tocsc())
REFUSED = {
    "dense": (lambda b: geoopt.solve(np.eye(3), b), b[:3], UnsupportedError, "sparse matrix"),
    "not square": (lambda b: spsolve(sp.csc_array(np.ones((3, 2))), b), b[:3], ShapeError, "must be square"),
    "another length": (lambda b: geoopt.solve(K, b), b[:3], ShapeError, "does not fit"),
    "sparse right-hand side": (lambda K: spsolve(K.tocsc(), K.tocsc()), K, UnsupportedError, "toarray"),
    "values": (lambda b: geoopt.solve(K, b, fixed=[1], values=b), b, ShapeError, "those of 1 unknowns"),
    "steps of an iteration": (lambda K: cg(K, b, maxiter=3)[0], K, UnsupportedError, "leave maxiter out"),
    "factors from outside": (lambda b: OUTSIDE.solve(b), b, TracingError, "call splu or factorized inside"),
    "callback": (lambda K: cg(K, b, callback=print)[0], K, UnsupportedError, "leave it out"),
    "parts of factors": (lambda K: splu(K.tocsc()).L, K, UnsupportedError, "to solve only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    function, argument, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message) as caught:
        geoopt.compile(function, argument)
    assert isinstance(caught.value, TracingError)


def test_a_matrix_that_its_owner_changes_is_factored_again(calls):
    A = K.copy()
    program = geoopt.compile(lambda A, b: geoopt.solve(A, b), A, b)
    first = program(A, b)
    A.data *= 2
    calls.clear()
    np.testing.assert_allclose(program(A, b), first / 2, rtol=1e-12)
    np.testing.assert_allclose(geoopt.solve(A, b), first / 2, rtol=1e-12)
    A.data /= 4
    np.testing.assert_allclose(geoopt.solve(A, b), 2 * first, rtol=1e-12)
    assert calls.count("factor") == 3
