"""NumPy's functions on symbolic arrays give what NumPy gives on floats."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import geoopt
from geoopt import symbolic
from geoopt.evaluate import evaluate
from geoopt.ops import BY_UFUNC
from geoopt.symbolic.dispatch import signature_of
from geoopt.trace import trace

from .cases_moving import CHANGING, CHOICES, ELEMENTWISE, MASK, MOVING, RNG, C, F, S, T, V, X
from .cases_samples import SAMPLES, STATISTICS
from .cases_sums import DECOMPOSITIONS, LINEAR_ALGEBRA, PRODUCTS, SUMS
from .test_stages import arrays

# NumPy warns where the cases divide by zero and the like
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

TABLES = {
    "moving": MOVING,
    "changing": CHANGING,
    "choices": CHOICES,
    "elementwise": ELEMENTWISE,
    "samples": SAMPLES,
    "statistics": STATISTICS,
    "sums": SUMS,
    "products": PRODUCTS,
    "linear algebra": LINEAR_ALGEBRA,
}
CASES = {name: case for table in (*TABLES.values(), DECOMPOSITIONS) for name, case in table.items()}
VALUES = {"v": V, "x": X, "t": T, "s": S}


def running(*cases):
    """The cases as one function of all arguments."""

    def function(v, x, t, s):
        given = {"v": v, "x": x, "t": t, "s": s}
        return tuple(case(*(given[name] for name in inspect.signature(case).parameters)) for case in cases)

    return function


def assert_same(got, want):
    got, want = arrays(got), arrays(want)
    assert [g.shape for g in got] == [w.shape for w in want]
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-11, err_msg=f"result {i}")


@pytest.mark.parametrize("name", CASES)
def test_traced(name):
    function = running(CASES[name])
    traced, signature = trace(function, tuple(VALUES.values()))
    traced.check()
    assert_same(signature.rebuild(evaluate(traced, list(VALUES.values()))), function(**VALUES))


@pytest.mark.parametrize("name", CASES)
def test_views_as_arguments(name):
    """Arguments that are permuted in memory, by strides and by indices."""
    function = running(CASES[name])
    there, back = np.array([3, 0, 4, 1, 2]), np.array([1, 3, 4, 0, 2])
    stored = (V[::-1], X[there], T.transpose(2, 0, 1), S[:, ::-1])
    traced, signature = trace(lambda v, x, t, s: function(v[::-1], x[back], t.transpose(1, 2, 0), s[:, ::-1]), stored)
    assert_same(signature.rebuild(evaluate(traced, list(stored))), function(**VALUES))


EDGES = {
    "moving": lambda e, h: (
        *(np.tile(e, (2, 1)), np.flip(e), np.roll(e, 1, 0), np.pad(e, 1), np.insert(e, 1, 5.0, axis=1)),
        *(np.hstack([e, e]), np.repeat(e, 2, axis=0), *np.unstack(e), *np.unstack(e, axis=1), np.reshape(e, (3, 0))),
        *(
            np.flip(h),
            np.squeeze(h),
            np.ravel(h),
            np.tile(h, 2),
            np.repeat(h, 3),
            np.transpose(h),
            np.insert(h, 0, 1.0),
        ),
        *(np.append(h, e), np.hstack([h, h]), np.diagflat(h), np.stack([h, h]), np.block(h), *np.meshgrid(h, e)),
        *(np.choose([0, 1], [h, 2 * h]), np.where(True, h, e), np.piecewise(h, [True], [2.0]), np.resize(h, 3)),
    ),
    "sums": lambda e, h: (
        *(np.sum(e), np.prod(e, 0), np.max(e, 1), np.cumsum(e, 0), np.cumsum(e, 1), np.var(e, 1), np.diff(e)),
        *(np.bincount(F[:0, 0], e[:, 0], 3), np.bincount(F[:0, 0], e[:, 0]), np.add.reduceat(e, [0, 1], axis=1)),
        *(np.sum(h), np.prod(h), np.max(h), np.var(h), np.cumsum(h), np.average(h), np.ptp(h)),
    ),
    "products": lambda e, h: (
        *(np.einsum("ni,nj->ij", e, e), np.cross(e, e), np.linalg.norm(e, axis=1), np.linalg.norm(e), e @ C),
        *(np.linalg.inv(e[:, :, None] * e[:, None]), np.linalg.det(e[:, :, None] * e[:, None]), np.kron(e, C)),
        *(np.linalg.det(e[:, :0]), np.linalg.inv(e[:, :0]), np.linalg.cholesky(e[:, :0]), *np.linalg.slogdet(e[:, :0])),
        *(np.linalg.solve(e[:, :0], e), np.where(np.all(e), 1.0, h), np.where(np.any(e, axis=1), 1.0, 2.0)),
        *(np.count_nonzero(e - e[:1], axis=0), np.count_nonzero(h) * h),
        *(np.einsum("", h), np.einsum("...->...", h), np.outer(h, h), np.dot(h, e), np.inner(h, h), np.linalg.norm(h)),
        *(np.linspace(h, e, 3), np.polyval([1.0, 2.0], h), np.clip(h, 0, 0.5), np.add.outer(e, h)),
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_arrays_without_entries_and_without_axes(name):
    values = np.zeros((0, 3)), np.array(0.7)
    assert_same(geoopt.compile(EDGES[name], *values)(*values), EDGES[name](*values))


@pytest.mark.parametrize("table", TABLES)
def test_compiled(table):
    function = running(*TABLES[table].values())
    program = geoopt.compile(function, **VALUES)
    others = {name: 0.9 * value + 0.01 for name, value in VALUES.items()}
    assert_same(program(**others), function(**others))


@pytest.mark.parametrize("shape", [(5000,), (70_000, 3), (2, 9000)])
def test_the_extreme_of_a_long_axis_is_found_in_stages(shape):
    """No kernel has more operations where there are more entries."""
    x = np.random.default_rng(0).normal(size=shape)
    axis = int(np.argmax(shape))
    program = geoopt.compile(lambda x: (np.max(x, axis=axis), np.min(x, axis=axis)), x)
    for got, want in zip(program(x), (x.max(axis=axis), x.min(axis=axis)), strict=True):
        np.testing.assert_array_equal(got, want)
    assert max(k["operations"] for k in program.report()["kernels"]) <= 2 * 3 * 64
    x.ravel()[7] = np.nan
    for got, want in zip(program(x), (x.max(axis=axis), x.min(axis=axis)), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", MOVING)
def test_moving_data_makes_no_node(name):
    if name in ("shape", "ndim", "size"):
        return
    graph = trace(running(lambda v, x, t: MOVING[name](v, x, t)), tuple(VALUES.values()))[0].graph
    assert {n.op for n in graph.nodes} <= {"variable", "constant", "scalars", "add", "subtract", "multiply"}


class Recorder(dict):
    """A table that knows which of its entries were asked for."""

    def __init__(self, table):
        super().__init__(table)
        self.used = set()

    def __getitem__(self, key):
        self.used.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.used.add(key)
        return super().get(key, default)


def test_every_function_has_a_case(monkeypatch):
    tables = [Recorder(t) for t in (symbolic.FUNCTIONS, symbolic.UFUNCS, symbolic.UFUNC_METHODS)]
    for name, table in zip(("FUNCTIONS", "UFUNCS", "UFUNC_METHODS"), tables, strict=True):
        monkeypatch.setattr(symbolic, name, table)
    trace(running(*CASES.values()), tuple(VALUES.values()))
    rows = {u for u in BY_UFUNC if u.nout == 1}  # of the operations' table, which has tests of its own
    for table in tables:
        assert not table.keys() - table.used - rows


def test_arguments_have_numpys_names():
    for function, answer in symbolic.FUNCTIONS.items():
        if ours := getattr(answer, "__wrapped__", None):
            numpys = signature_of(function, ours).parameters.values()
            if not any(p.kind is p.VAR_KEYWORD for p in numpys):
                assert set(inspect.signature(ours).parameters) <= {p.name for p in numpys}, function.__name__


def shapes_of(function, *arguments):
    return [n.shape for n in trace(function, arguments)[0].graph.nodes]


def test_einsum_contracts_early():
    m = RNG.uniform(size=(50, 3, 3))
    x, y = m[:, 0], m[:, 1]
    # two products of nine entries would hold 50 × 3 × 3 × 3 numbers at once
    assert max(map(np.prod, shapes_of(lambda *a: np.einsum("ij,nij,nj->n", *a), m[0], m, x))) == m.size
    assert max(map(np.prod, shapes_of(lambda *a: np.einsum("nij,njk,nkl,nl->ni", *a), m, m, m, x))) == m.size
    assert max(map(np.prod, shapes_of(lambda *a: np.einsum("ni,mj->nm", *a), x, y))) == 2500


def test_the_number_of_nodes_does_not_depend_on_the_number_of_elements():
    def count(n):
        x = np.ones((n, 3))
        named = {"v": x[:, 0], "x": x, "m": np.ones((n, 6, 6))}
        bins, starts = np.arange(n) // 3, np.arange(0, n, 4)  # sums of thousands are sums of sums

        def function(v, x, m):
            moved = (
                np.roll(x, 1, 0),
                np.tile(x, (2, 1)),
                np.pad(x, 1),
                np.insert(x, 1, v, axis=1),
                np.unstack(x, axis=1),
            )
            sums = np.bincount(bins, v), np.add.reduceat(x, starts), np.max(x, 1), np.cumsum(x, 1), np.diff(x, axis=0)
            return moved, sums, np.linalg.inv(m), np.einsum("ni,nij->nj", x, x[:, :, None])

        return len(trace(function, tuple(named.values()))[0].graph.nodes)

    assert count(40) == count(4000)


def test_values_of_one_element_stay_together_whatever_joined_them():
    def function(v, x):
        y = np.sqrt(v * x[:, 0])
        joined = np.stack([y, x[:, 2], 2 * y, np.ones(len(x))], axis=1)
        return np.sum(np.hstack([joined, x]) ** 2, axis=1) * np.insert(joined, 1, v, axis=1)[:, 0]

    program = geoopt.compile(function, np.ones(40), np.ones((40, 3)))
    assert [k.size for k in program.plan.kernels] == [40] and program.plan.workspace_size == 0


UNSUPPORTED = {
    "positional out": (lambda x: np.sum(x, 0, None, np.zeros(3)), "np.sum with out="),
    "integers": (lambda x: np.sum(x, dtype=int), "np.sum with dtype=.* floating-point"),
    "order": (lambda x: np.reshape(x, (3, 5), order="A"), "order='A', that of the memory,"),
    "order of ravel": (lambda x: np.ravel(x, "K"), "order='K', that of the memory,"),
    "integers when joining": (lambda x: np.hstack([x, x], dtype=int), "np.hstack with dtype"),
    "ufunc argument": (lambda x: np.vecdot(x, x, keepdims=True), "np.vecdot with keepdims"),
    "reduce argument": (lambda x: np.add.reduce(x, dtype=int), "np.add.reduce with dtype"),
    "mean where": (lambda x: np.mean(x, where=MASK), "np.mean with where"),
    "long product": (lambda x: np.prod(np.tile(x, 30), axis=1), "multiply of all over 90 entries .* trailing axes"),
    "sort": (lambda x: np.sort(np.tile(x, 6)), "sorting 18 symbolic values .* depends on values"),
    "argmax": (lambda x: np.argmax(x), r"np.argmax of an array of shape \(5, 3\).* depends on values"),
    "argmax of rows": (lambda x: np.argmax(x[:2], axis=1), r"np.argmax of .*, axis=1, is not .* np.where"),
    "unique": (lambda x: np.unique(x), r"np.unique is not .* depends on values .* np.where\(condition, a, b\)"),
    "sort in place": (lambda x: np.tile(x, 6).sort(), "sorting 18 symbolic values"),
    "argsort": (lambda x: x.argsort(axis=0), r"x.argsort\(\) is not supported .* depends on values"),
    "method argmax": (lambda x: x.argmax(), "np.argmax of .* depends on values .* np.max"),
    "nonzero of a number": (lambda x: x[0, 0].nonzero(), "np.nonzero of a number"),
    "places": (lambda x: np.where(x > 0), "returned np.where.m. of an unknown m"),
    "file": (lambda x: x.tobytes(), r"x.tobytes\(\) is not supported .* return it"),
    "key": (lambda x: {x[0, 0]: 1}, "a symbolic number as a key"),
    "strides": (lambda x: x.strides, "x.strides is not supported"),
    "reduceat": (lambda x: np.multiply.reduceat(x, [0, 1]), "np.multiply.reduceat is not supported"),
    "subtract.reduce": (lambda x: np.subtract.reduce(x), "np.subtract.reduce is not supported"),
    "where alone": (lambda x: np.where(x > 1), "give both values"),
    "mask in take": (lambda x: np.take(x, MASK), "np.take with a mask"),
    "nuclear norm of a large matrix": (
        lambda x: np.linalg.norm(np.tile(x, 2)[:4], "nuc"),
        "singular values of matrices",
    ),
    "det of a rectangle": (lambda x: np.linalg.det(x), r"matrices of shape \(5, 3\)"),
    "det of seven": (lambda x: np.linalg.det(np.tile(x[0, 0], (7, 7))), "at most 6×6"),
    "padding by means": (lambda x: np.pad(x, 1, mode="mean"), "np.pad with mode='mean'"),
    "distances": (lambda x: np.gradient(x, 1.0, 2.0, 3.0), "no 3 distances for 2 axes"),
    "svd of five": (
        lambda x: np.linalg.svd(x @ x.T),
        r"singular values of matrices of shape \(5, 5\) .* at most 3 rows",
    ),
    "square factor of a tall matrix": (lambda x: np.linalg.svd(x)[0] @ x, r"of shape \(5, 5\) .* full_matrices=False"),
    "result with such a factor": (lambda x: np.linalg.svd(x), r"of shape \(5, 5\) .* full_matrices=False"),
    "svd of symmetric ones": (lambda x: np.linalg.svd(x[:3], hermitian=True), "np.linalg.svd with hermitian=True"),
    "eigenvalues of thirteen": (lambda x: np.linalg.eigh(np.tile(x[0, 0], (13, 13))), r"\(13, 13\) .* 12×12"),
    "complex eigenvalues": (lambda x: np.linalg.eigvals(x[:3]), "np.linalg.eigvals is not supported .* eigh"),
    "rank": (lambda x: np.linalg.matrix_rank(x), "np.linalg.matrix_rank is not .* svdvals"),
}
REFUSED = {
    "item of several": (lambda x: x.item(), r"x.item\(\) of an array that has several"),
    "squeeze": (lambda x: np.squeeze(x, 0), "np.squeeze: cannot select an axis"),
    "axis": (lambda x: np.flip(x, 4), "np.flip: axis 4 is out of bounds"),
    "axis of sum": (lambda x: np.sum(x, (0, 0)), "np.sum: duplicate value"),
    "split": (lambda x: np.split(x, 2), "np.split: array split does not result"),
    "broadcast": (lambda x: np.broadcast_to(x, (5, 4)), "np.broadcast_to"),
    "concatenate": (lambda x: np.concatenate([x, x[0]]), "cannot concatenate arrays of shapes"),
    "stack": (lambda x: np.stack([x, x[0]]), "cannot stack arrays of shapes"),
    "block": (lambda x: np.block([[x, x[:2]]]), "np.block"),
    "maximum of nothing": (lambda x: np.max(x[:0]), "no identity"),
    "masked maximum": (lambda x: np.max(x, where=MASK), "has to specify 'initial'"),
    "large mask": (lambda x: np.sum(x[0], where=MASK), "is larger than the array"),
    "weights": (lambda x: np.average(x, weights=x[0]), "axis must be specified"),
    "weights along": (lambda x: np.average(x, weights=x[:, 0], axis=1), "shape of weights"),
    "bins": (lambda x: np.bincount([0, 1], x[:, 0]), "np.bincount"),
    "subscripts": (lambda x: np.einsum("ijk", x), "np.einsum: operand has fewer dimensions"),
    "few subscripts": (lambda x: np.einsum("i", x), "np.einsum: operand has more dimensions"),
    "output": (lambda x: np.einsum("ij->ik", x), "np.einsum: each output subscript"),
    "output twice": (lambda x: np.einsum("ij->ii", x), "np.einsum: each output subscript"),
    "terms": (lambda x: np.einsum("ij,jk", x), "2 terms for 1 operands"),
    "lengths": (lambda x: np.einsum("ij,ij", x, x[:2]), "an axis has two lengths: 5 and 2"),
    "diagonal": (lambda x: np.einsum("ii", x), "repeated subscript"),
    "matmul": (lambda x: x @ x, "cannot multiply matrices"),
    "tensordot": (lambda x: np.tensordot(x, x, 1), "shape-mismatch"),
    "cross": (lambda x: np.cross(x, x[0, 0].reshape(1)), "incompatible vector sizes"),
    "norm of vectors": (lambda x: np.linalg.norm(x[0], "fro"), "Invalid norm order 'fro' for vectors"),
    "linalg.cross": (lambda x: np.linalg.cross(x[:, :2], x[:, :2]), "3-dimensional vectors"),
    "select": (lambda x: np.select([MASK], [x, x]), "same length"),
    "piecewise": (lambda x: np.piecewise(x, [MASK], [1.0, 2.0, 3.0]), "1 or 2 functions"),
    "gradient": (lambda x: np.gradient(x[:1], axis=0), "too small to calculate a numerical gradient"),
    "order of gradient": (lambda x: np.gradient(x, edge_order=3), "'edge_order' greater than 2"),
    "coordinates": (lambda x: np.gradient(x[:, 0], x[:2, 0]), "distances must match the length"),
    "convolve": (lambda x: np.convolve(x[:, 0], x[0], "some"), "mode must be"),
    "nothing to convolve": (lambda x: np.convolve(x[:, 0], []), "v cannot be empty"),
    "matrices to convolve": (lambda x: np.convolve(x, x[0]), "object too deep"),
    "cov": (lambda x: np.cov(x[None]), "more than 2 dimensions"),
    "clip": (lambda x: np.clip(x, 0, 1, max=3), "passing `min` or `max`"),
}
STRUCTURE = {
    "take": lambda x: np.take(x, x),
    "repeat": lambda x: np.repeat(x, x[0]),
    "flip": lambda x: np.flip(x, x[0, 0]),
    "compress": lambda x: np.compress(x[:, 0] > 1, x, axis=0),
    "delete": lambda x: np.delete(x, [x[0, 0]]),
    "pad": lambda x: np.pad(x, x[0, 0]),
    "sum": lambda x: np.sum(x, where=x > 1),
    "bincount": lambda x: np.bincount(x[:, 0], x[:, 0]),
}


def message_of(function, kind):
    with pytest.raises(kind) as caught:
        trace(function, (X,))
    assert f"{__file__}:" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_said(name):
    function, message = UNSUPPORTED[name]
    assert re.search(message, message_of(function, geoopt.UnsupportedError), re.DOTALL)


def test_attributes_that_are_not_there_can_be_asked_for():
    def function(x):
        assert hasattr(x, "sum") and not any(hasattr(x, name) for name in ("argsort", "strides", "ids_", "toarray"))
        with pytest.raises(AttributeError):
            _ = x.toarray
        return x

    trace(function, (X,))
    with pytest.raises(
        AttributeError, match=r"NumPy's arrays have no attribute 'toarray'\n  at .*test_array_functions"
    ):
        trace(lambda x: x.toarray(), (X,))


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused(name):
    function, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError, np.exceptions.AxisError)):
        function(X)
    assert message in message_of(function, geoopt.ShapeError)


def test_an_axis_that_is_not_there_is_an_index_error_too():
    message_of(lambda x: np.expand_dims(x, 5), IndexError)


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure_must_be_known(name):
    assert "structure must be known while tracing" in message_of(STRUCTURE[name], geoopt.TracingError)


@pytest.mark.parametrize("function", [lambda x: np.delete(x, 7, axis=0), lambda x: np.add.reduceat(x, [9])])
def test_indices_out_of_bounds_name_the_line(function):
    with pytest.raises(IndexError):
        function(X)
    assert "out of bounds" in message_of(function, IndexError)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_what_is_not_zero_is_counted(axis, keepdims):
    x = np.array([[1.0, 0.0, -0.0], [np.nan, 2.0, 0.0]])
    program = geoopt.compile(lambda x: np.count_nonzero(x, axis=axis, keepdims=keepdims), x)
    for given in (x, 0 * x, x[::-1] - 2):
        np.testing.assert_array_equal(program(given), np.count_nonzero(given, axis=axis, keepdims=keepdims))
    held = geoopt.compile(lambda x: np.count_nonzero(x > 0.5), x)
    assert held(x) == np.count_nonzero(x > 0.5) == 2
