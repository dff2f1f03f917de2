"""Derivatives: equal to differences, symmetric, the same compiled or not, and composed in every way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import geoopt
from geoopt.graph.references import reachable
from geoopt.meshes import cloth, icosphere, tetrahedral_ball
from geoopt.operators import (
    bending_energy,
    edges,
    neo_hookean_energy,
    spring_energy,
    st_venant_kirchhoff_energy,
    surface_area,
    symmetric_dirichlet_energy,
)
from geoopt.ops import ROWS
from geoopt.sparse import from_triplets
from geoopt.trace import trace

from .conftest import differences
from .test_ops import operands
from .test_random_programs import Choices

V, F = icosphere(42)
V = V + 0.05 * np.random.default_rng(0).normal(size=V.shape)
B, T = tetrahedral_ball(30)
W, G = cloth(30)
E = edges(F)
L = from_triplets(E[:, 0], E[:, 1], np.linspace(0.5, 2, len(E)), (len(V), len(V)))


def noise(like, size=0.1, seed=1):
    return size * np.random.default_rng(seed).normal(size=like.shape)


def vertex_energy(x):
    return np.sum(np.exp(x[:, 0]) * x[:, 1] ** 2 + np.cos(x[:, 2]))


def edge_energy(x):
    return spring_energy(x, E, np.full(len(E), 0.4), 3.0)


def row_energy(x):
    """Over the rows of a sparse matrix: a sum inside."""
    return np.sum(np.sqrt(1 + np.sum((L @ x) ** 2, axis=1)))


def normals(x):
    n = np.zeros_like(x)
    a, b, c = (x[F[:, i]] for i in range(3))
    np.add.at(n, F, np.cross(b - a, c - a)[:, None])
    return n / np.linalg.norm(n, axis=1)[:, None]


def support_energy(x):
    """Of normals at vertices: two levels of sums."""
    return np.sum(np.sum(normals(x) * x, axis=1) ** 2)


def angle_defects(x):
    corners = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        a, b = x[F[:, j]] - x[F[:, i]], x[F[:, k]] - x[F[:, i]]
        corners.append(np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1)))
    return 2 * np.pi - np.bincount(F.T.ravel(), np.concatenate(corners), len(x))


def defect_energy(x):
    return np.sum(angle_defects(x) ** 2)


def several_energies(x):
    """Sums over different elements, and a sum of sums."""
    return 2 * surface_area(x, F) - edge_energy(x) / 3 + vertex_energy(x) * 0.5


def isoperimetric_ratio(x):
    """A function of sums: dense by nature."""
    a, b, c = (x[F[:, i]] for i in range(3))
    volume = np.sum(np.cross(a, b) * c) / 6
    return surface_area(x, F) ** 3 / volume**2


def by_loops(x):
    total = 0.0
    for i, j in E.tolist():
        d = [x[i, c] - x[j, c] for c in range(3)]
        total = total + np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) * x[i, 0]
    return total


def two_steps(x):
    """Smoothing by gathers, twice, with something nonlinear between."""
    y = np.tanh(x[F].mean(axis=1))
    z = np.stack([y[:, 0] * y[:, 1], y[:, 2]], axis=1)[::-1]
    return np.sum(z[:10] * z[10:20]) + np.sum(z[:, ::-1] ** 3)


ENERGIES = {
    "vertices": (vertex_energy, V),
    "edges": (edge_energy, V),
    "triangles": (lambda x: surface_area(x, F), V),
    "hinges": (lambda x: bending_energy(x, V, F), V + noise(V)),
    "maps": (lambda x: symmetric_dirichlet_energy(x, W, G), W[:, :2] @ [[1, 0.2], [0.1, 1]] + noise(W[:, :2], 0.01)),
    "neo-Hookean": (lambda x: neo_hookean_energy(x, B, T, 2.0, 3.0), B * 1.1 + noise(B, 0.01)),
    "St. Venant-Kirchhoff": (lambda x: st_venant_kirchhoff_energy(x, B, T, 2.0, 3.0), B * 1.1 + noise(B, 0.05)),
    "sparse rows": (row_energy, V),
    "normals": (support_energy, V),
    "angle defects": (defect_energy, V),
    "several": (several_energies, V),
    "a ratio of sums": (isoperimetric_ratio, V),
    "loops": (by_loops, V),
    "gathers of gathers": (two_steps, V),
}


@pytest.fixture(params=ENERGIES, ids=str)
def energy(request):
    return ENERGIES[request.param]


def assert_near(got, want, tolerance=1e-6):
    got, want = (a.toarray() if sp.issparse(a) else np.asarray(a) for a in (got, want))
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= tolerance * max(np.abs(want).max(initial=0), 1e-3)


# -- equal to differences -----------------------------------------------------------------------------


def test_the_gradient_is_the_limit_of_differences(energy):
    f, x = energy
    value, slope = geoopt.value_and_gradient(f)(x)
    assert np.isclose(value, f(x), rtol=1e-12)
    assert_near(slope.ravel(), differences(f, x))
    assert_near(geoopt.compile(geoopt.gradient(f), x)(x), slope, 1e-10)


def test_the_hessian_is_the_derivative_of_the_gradient(energy):
    f, x = energy
    H = geoopt.hessian(f)(x)
    assert isinstance(H, sp.csr_array) and H.has_canonical_format
    slope = geoopt.compile(geoopt.gradient(f), x)
    assert_near(H, differences(lambda y: slope(y).ravel(), x))
    assert_near(H, H.T, 1e-12)
    assert_near(geoopt.hessian(f, triangle="lower")(x), sp.tril(H), 1e-12)
    v = noise(x, 1.0, 5)
    assert_near(geoopt.hessian_product(f)(x, v).ravel(), H @ v.ravel(), 1e-9)


def test_compiled_hessians_are_the_same(energy):
    f, x = energy
    y = x + noise(x, 1e-3, 3)
    both = geoopt.compile(lambda x: (geoopt.gradient(f)(x), geoopt.hessian(f)(x)), x)
    slope, H = both(y)
    assert_near(slope, geoopt.gradient(f)(y), 1e-10)
    assert_near(H, geoopt.hessian(f)(y), 1e-10)
    product = geoopt.compile(geoopt.hessian_product(f), x, x)
    assert_near(product(y, x).ravel(), H @ x.ravel(), 1e-9)


@pytest.mark.parametrize("f", [normals, angle_defects, lambda x: L @ x, lambda x: np.exp(x[F[:, 0]]) - x[F[:, 1]] ** 2])
def test_jacobians_are_the_limit_of_differences(f):
    J = geoopt.jacobian(f)(V)
    assert_near(J, differences(lambda y: f(y).ravel(), V))
    assert J.nnz < 0.5 * np.prod(J.shape)
    assert_near(geoopt.compile(geoopt.jacobian(f), V)(V), J, 1e-12)


@pytest.mark.parametrize("row", [r for r in ROWS if not r.gives_bool], ids=lambda r: r.name)
def test_every_operation_is_differentiated_twice(row):
    inputs = operands(row)

    def f(*x):
        weights = np.cos(np.arange(37.0))
        return np.sum(weights * (np.where(x[0] > 0, x[1], x[2]) if row.name == "where" else row.numpy(*x)))

    everything = tuple(range(row.arity))
    slopes = geoopt.gradient(f, everything)(*inputs)
    for k, slope in enumerate(slopes):
        want = differences(lambda x, k=k: f(*inputs[:k], x, *inputs[k + 1 :]), inputs[k])
        np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-7)
    compiled = geoopt.compile(geoopt.gradient(f, everything), *inputs)
    H = geoopt.hessian(f, everything)(*inputs).toarray()
    for k in everything:
        turned = differences(lambda x, k=k: np.concatenate(compiled(*inputs[:k], x, *inputs[k + 1 :])), inputs[k])
        np.testing.assert_allclose(H[:, 37 * k : 37 * k + 37], turned, rtol=1e-5, atol=1e-5 * max(1, abs(H).max()))


def random_energy(seed, length):
    program = Choices(seed, length)

    def f(x, y, h, F):
        return sum(np.sum(np.sin(a)) for a in program(x, y, h, F))

    return f


def takes_root_of_zero(run):
    """Whether the norm of a zero vector occurs, of which the derivative is 0 / 0."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sqrt", "hypot"):
            root = getattr(np, name)
            patch.setattr(np, name, lambda *x, root=root: found.append(root(*x)) or found[-1])
        run()
    return any(np.any(root == 0) for root in found)


@settings(settings.default, max_examples=settings.default.max_examples // 2)
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 6), n=st.integers(1, 8))
def test_random_programs_have_the_slope_of_differences(seed, length, n):
    rng = np.random.default_rng(seed)
    F = rng.integers(0, n, (int(rng.integers(0, 2 * n + 1)), 3))
    at = [rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, 3)), 0.7]
    direction = [rng.normal(size=np.shape(a)) for a in at]
    f = random_energy(seed, length)
    h = 1e-6
    before, here, after = (f(*(a + s * h * d for a, d in zip(at, direction, strict=True)), F) for s in (-1, 0, 1))
    left, right = (here - before) / h, (after - here) / h
    assume(abs(left - right) <= 1e-3 * max(1, abs(left)))  # the program is smooth here
    assume(not takes_root_of_zero(lambda: f(*at, F)))  # where 0 times infinity is documented
    slopes = geoopt.gradient(f, (0, 1, 2))(*at, F)
    slope = sum(np.sum(g * d) for g, d in zip(slopes, direction, strict=True))
    assert abs(slope - (left + right) / 2) <= 1e-4 * max(1, abs(left))
    assert_near(geoopt.jvp(f, (0, 1, 2))(*at, F, tuple(direction)), slope, 1e-8)
    compiled = geoopt.compile(geoopt.gradient(f, (0, 1, 2)), *at, F)(*at)
    for got, want in zip(compiled, slopes, strict=True):
        assert_near(got, want, 1e-8)


@settings(settings.default, max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 4), n=st.integers(1, 5))
def test_random_programs_have_the_hessian_that_products_give(seed, length, n):
    rng = np.random.default_rng(seed)
    F = rng.integers(0, n, (int(rng.integers(0, 2 * n + 1)), 3))
    x, y = rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, 3))
    direction = rng.normal(size=n), rng.normal(size=(n, 3))
    f = random_energy(seed, length)
    assume(not takes_root_of_zero(lambda: f(x, y, 0.7, F)))  # where 0 times infinity is documented
    H = geoopt.hessian(f, (0, 1))(x, y, 0.7, F)
    product = geoopt.hessian_product(f, (0, 1))(x, y, 0.7, F, direction)
    flat = [np.concatenate([a.ravel(), b.ravel()]) for a, b in (direction, product)]
    assert_near(H @ flat[0], flat[1], 1e-8)
    assert_near(H, H.T, 1e-10)


# -- arguments and composition --------------------------------------------------------------------------


def spring(x, stiffness, rest=0.4):
    return spring_energy(x, E, np.full(len(E), 1.0) * rest, stiffness)


def test_arguments_are_chosen_by_position_or_name():
    want = geoopt.gradient(lambda k: spring(V, k))(3.0)
    assert np.ndim(want) == 0
    assert geoopt.gradient(spring, 1)(V, 3.0) == want
    assert geoopt.gradient(spring, "stiffness")(V, stiffness=3.0) == want
    assert geoopt.gradient(spring, 1)(V, stiffness=3.0) == want
    slopes = geoopt.gradient(spring, ("rest", 0))(V, 3.0, 0.4)
    assert isinstance(slopes, tuple) and slopes[0].shape == () and slopes[1].shape == V.shape
    program = geoopt.compile(geoopt.gradient(spring, (0, "stiffness")), V, 2.0)
    assert_near(program(V, stiffness=3.0)[1], want, 1e-12)
    assert "gradient of spring" in repr(program)


def test_hessians_by_several_arguments_join_them_in_the_order_given():
    H = geoopt.hessian(spring, ("stiffness", 0, "rest"))(V, 3.0, 0.4).toarray()
    joint = np.concatenate([[3.0], V.ravel(), [0.4]])
    want = geoopt.hessian(lambda z: spring(z[1:-1].reshape(V.shape), z[0], z[-1]))(joint)
    assert_near(H, want, 1e-12)


def test_views_of_other_arrays_are_arguments_like_any():
    def f(x, y):
        part = np.concatenate([x[::2], y[[0, 0, 1]]])
        return geoopt.gradient(vertex_energy)(part), geoopt.hessian(vertex_energy)(part.T[::-1].T)

    slope, H = geoopt.compile(f, V, V + 1)(V, V + 1)
    part = np.concatenate([V[::2], (V + 1)[[0, 0, 1]]])
    assert_near(slope, geoopt.gradient(vertex_energy)(part), 1e-12)
    assert_near(H, geoopt.hessian(vertex_energy)(part[:, ::-1].copy()), 1e-12)


def test_derivatives_of_derivatives():
    def descent(x):
        """The energy after a step along the gradient."""
        return vertex_energy(x - 0.1 * geoopt.gradient(vertex_energy)(x))

    assert_near(geoopt.gradient(descent)(V).ravel(), differences(descent, V))
    third = geoopt.gradient(geoopt.gradient(geoopt.gradient(lambda t: np.exp(2 * t) + t**4)))
    assert np.isclose(third(0.5), 8 * np.exp(1.0) + 12.0, rtol=1e-12)
    by_hessian = lambda x: np.sum(geoopt.hessian(vertex_energy)(x).diagonal() ** 2)  # noqa: E731
    assert_near(geoopt.gradient(by_hessian)(V[:5]).ravel(), differences(by_hessian, V[:5]))
    J = geoopt.jacobian(geoopt.gradient(edge_energy))(V)
    assert_near(J, geoopt.hessian(edge_energy)(V), 1e-10)


def test_what_a_function_reads_beside_its_arguments_is_fixed():
    def f(x, h):
        scaled = x * h
        inner = lambda y: np.sum(np.where(h > 0, y * y * scaled, 0.0)) * np.sqrt(h)  # noqa: E731
        return geoopt.gradient(inner)(x), geoopt.hessian(inner)(x).diagonal()

    slope, diagonal = geoopt.compile(f, V, 2.0)(V, 4.0)
    assert_near(slope, 2 * V * 4 * V * 2, 1e-12)
    assert_near(diagonal, 2 * (4 * V * 2).ravel(), 1e-12)


def test_a_function_that_does_not_depend_on_its_argument_has_no_slope():
    assert (geoopt.gradient(lambda x: 3.0)(V) == 0).all()
    assert (geoopt.gradient(lambda x, y: np.sum(y), 0)(V, V) == 0).all()
    assert geoopt.hessian(lambda x: np.sum(x))(V).nnz == 0
    assert geoopt.gradient(lambda x: np.sum(x[:0]))(V[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geoopt.gradient(lambda x: x * x)(V), "needs one number"),
        (lambda: geoopt.gradient(lambda x: (x, x))(V), "returned tuple"),
        (lambda: geoopt.gradient(spring, "speed")(V, 1.0), "names no argument.*x, stiffness"),
        (lambda: geoopt.gradient(spring, 5)(V, 1.0), "names no argument"),
        (lambda: geoopt.gradient(spring, (0, "x"))(V, 1.0), "names an argument twice"),
        (lambda: geoopt.gradient(surface_area, 1)(V, F), "derivatives are by floating-point"),
        (lambda: geoopt.gradient(lambda A: A.sum())(L.astype(int)), "derivatives are by floating-point"),
        (lambda: geoopt.hessian(spring, triangle="upper"), 'choose "full" or "lower"'),
    ],
)
def test_what_cannot_be_differentiated_is_refused(call, message):
    with pytest.raises(geoopt.GeooptError, match=message):
        call()


def test_dense_hessians_are_refused_with_a_way_out():
    big, faces = icosphere(10_000)
    ratio = lambda x: surface_area(x, faces) ** 2 / np.sum(x * x)  # noqa: E731
    with pytest.raises(geoopt.UnsupportedError, match=r"dense by nature(.|\n)*hessian_product"):
        geoopt.hessian(ratio)(big)
    product = geoopt.hessian_product(ratio)(big, big)
    assert np.abs(product).max() < 1e-2 * np.abs(geoopt.gradient(lambda x: surface_area(x, faces))(big)).max()


# -- where derivatives do not exist -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (np.sqrt, 0.0, np.inf),
        (np.cbrt, 0.0, np.inf),
        (np.arcsin, 1.0, np.inf),
        (np.arccos, 1.0, -np.inf),
        (np.arccos, -1.0, -np.inf),
        (np.log, 0.0, np.inf),
        (np.abs, 0.0, 0.0),
        (np.sign, 0.0, 0.0),
        (lambda x: np.sqrt(x * x), 0.0, np.nan),
        (lambda x: np.maximum(x, 0 * x), 0.0, (0.0, 1.0)),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
        (lambda x: np.where(x > 0, np.log(x), 2 * x), -1.0, 2.0),
        (lambda x: np.where(x > 0, np.where(x > 1, np.sqrt(x - 1), x), 0.0), 1.0, 1.0),
        (lambda x: np.maximum(np.sqrt(x), 1.0), 0.0, 0.0),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0) + np.where(x > 1, np.sqrt(x), 3 * x), 0.0, 3.0),
    ],
)
def test_conventions_where_there_is_no_derivative(function, x, slope):
    x = np.full(20, x)
    f = lambda x: np.sum(function(x))  # noqa: E731
    for got in (geoopt.gradient(f)(x), geoopt.compile(geoopt.gradient(f), x)(x)):
        assert np.isin(got, slope).all() if isinstance(slope, tuple) else np.array_equal(got, x * 0 + slope, True)


def test_what_is_not_chosen_leaks_through_no_gather_and_no_second_derivative():
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 2, 0]])
    pairs = np.array([[0, 1], [0, 2], [2, 3], [1, 3]])

    def f(x):
        square = np.sum((x[pairs[:, 1]] - x[pairs[:, 0]]) ** 2, axis=1)
        apart = square > 0
        length = np.sqrt(square)
        return np.sum(np.where(apart[[0, 1, 2, 3, 0]], length[[0, 1, 2, 3, 0]], 0.0))

    assert np.isfinite(geoopt.gradient(f)(x)).all()
    H = geoopt.hessian(f)(x)
    assert np.isfinite(H.data).all()
    safe = lambda x: np.sum(np.linalg.norm(x[pairs[[0, 2, 3, 0], 1]] - x[pairs[[0, 2, 3, 0], 0]], axis=1))  # noqa: E731
    assert_near(H, geoopt.hessian(safe)(x), 1e-12)


@pytest.mark.parametrize("shape", [(5,), (40,), (67,), (5000,), (4100, 3)])
@pytest.mark.parametrize("extreme", [np.max, np.min])
def test_the_extreme_of_many_numbers_has_the_derivative_of_the_chosen_one(shape, extreme):
    x = np.random.default_rng(0).normal(size=shape)
    weights = np.arange(1.0, 1 + np.ones(shape[1:]).size).reshape(shape[1:])
    f = lambda x: np.sum(weights * extreme(np.sin(x), axis=0))  # noqa: E731
    want = np.where(np.sin(x) == extreme(np.sin(x), axis=0), weights * np.cos(x), 0.0)
    program = geoopt.compile(geoopt.gradient(f), x)
    for got in (geoopt.gradient(f)(x), program(x)):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    # of equal numbers it is one, also where the last row of a tree is filled with others
    same = program(np.full(shape, 0.3))
    np.testing.assert_allclose(np.sort(same, axis=0)[-1], weights * np.cos(0.3), rtol=1e-14)
    assert np.count_nonzero(same) == weights.size


def test_extremes_of_more_numbers_need_no_more_kinds_of_kernels():
    f = lambda x: np.max(np.sum(x * x, axis=1)) - np.min(x)  # noqa: E731
    kernels = [len(geoopt.compile(geoopt.gradient(f), np.ones((n, 3))).plan.kernels) for n in (2000, 200_000)]
    assert kernels[0] <= 20 and kernels[1] <= kernels[0] + 15


def test_what_an_extreme_has_not_chosen_leaks_nothing():
    """The derivative of a root at 0 is infinite."""
    x = np.append(np.zeros(100), 2.0)
    for f in (lambda x: np.max(np.sqrt(x)), lambda x: np.max(np.sqrt(x[:6])) + np.max(np.sqrt(x))):
        found = geoopt.compile(geoopt.gradient(f), x)(x)
        assert found[-1] == 0.5 / np.sqrt(2.0) and np.isfinite(found[6:]).all()


def test_running_extremes_are_each_an_extreme_of_the_one_before():
    x = np.random.default_rng(1).normal(size=300)
    f = lambda x: np.sum(np.maximum.accumulate(x) * np.arange(300.0))  # noqa: E731
    want = np.zeros(300)
    np.add.at(want, [int(np.argmax(x[: i + 1])) for i in range(300)], np.arange(300.0))
    np.testing.assert_allclose(geoopt.gradient(f)(x), want, rtol=1e-13)


# -- counts -----------------------------------------------------------------------------------------------


def hessian_program(count, **options):
    x, faces = icosphere(count)
    return geoopt.compile(geoopt.hessian(surface_area), x, faces, options=geoopt.Options(**options)), x, faces


@pytest.mark.parametrize("derivative", [geoopt.gradient, geoopt.hessian, geoopt.hessian_product])
def test_the_number_of_nodes_does_not_depend_on_the_mesh(derivative):
    def nodes(count):
        x, faces = icosphere(count)
        direction = (x,) if derivative is geoopt.hessian_product else ()
        return len(reachable(trace(derivative(surface_area), (x, faces, *direction))[0]))

    assert nodes(52) == nodes(50_000)


def test_symmetric_values_of_an_element_are_computed_and_stored_once():
    program, _, faces = hessian_program(162)
    element = max(program.report()["kernels"], key=lambda k: k["operations"])
    assert element["members"] == len(faces) and element["values"] == 45


def test_symmetric_entries_are_one_sum_written_twice():
    program, x, _ = hessian_program(162, assembly="gather")
    H = program(x)
    assert (H.toarray() == H.toarray().T).all()
    [sums] = [k for k in program.report()["kernels"] if k["level"] == 2]  # the diagonal is not a kernel of its own
    assert sums["members"] == (H.nnz + len(x) * 3) // 2


def test_what_comes_through_one_gather_is_one_summand():
    def f(x):
        a, b = x[F[:, 0]], x[F[:, 1]]
        return np.sum(np.exp(a[:, 0]) * b[:, 1]) + np.sum(np.sin(a[:, 0] + b[:, 1]))

    [sum_] = [n for n in trace(geoopt.gradient(f), (V,))[0].graph.nodes if n.op == "segment_sum" and n.size == V.size]
    assert sum_.operands[0].size == 2 * len(F)  # not twice that


def test_kinds_of_energies_over_the_same_elements_are_one_kernel():
    def f(x):
        a, b, c = (x[F[:, i]] for i in range(3))
        return surface_area(x, F) + 2.0 * np.sum(np.sum((b - a) * (c - b), axis=1) ** 2) + np.sum(np.exp(c[:, 0]))

    program = geoopt.compile(geoopt.hessian(f), V)
    assert_near(program(V), geoopt.jacobian(geoopt.gradient(f))(V), 1e-12)
    elements = [k for k in program.report()["kernels"] if k["operations"] > 10]
    assert [k["members"] for k in elements] == [len(F)]
