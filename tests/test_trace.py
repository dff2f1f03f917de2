"""Tracing: nodes do not depend on the mesh; errors name the user's line and the remedy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.meshes import torus
from geoopt.operators import cotan_laplacian
from geoopt.sparse import from_diagonal
from geoopt.trace import trace


def test_the_number_of_nodes_does_not_depend_on_the_mesh():
    counts = {len(trace(cotan_laplacian, torus(n))[0].graph.nodes) for n in (100, 10_000)}
    assert counts == {30}


def test_equal_expressions_are_one_node():
    def f(x):
        return x * x[::-1], x[::-1] * x, np.sqrt(x) + 1, 1 + np.sqrt(x)

    ops = [n.op for n in trace(f, (np.ones(5),))[0].graph.nodes]
    assert sorted(ops) == ["add", "constant", "multiply", "sqrt", "variable"]


def test_moving_data_makes_no_node():
    def f(x):
        y = np.concatenate([x[::2].T.reshape(-1), np.roll(x, 1).ravel()])
        return np.repeat(y, 2)[np.arange(7) * 2], np.tile(y, 2), np.stack([y, y], 1), np.moveaxis(x, 0, 1)

    assert len(trace(f, (np.ones((4, 3)),))[0].graph.nodes) == 1


def test_constants_are_what_they_were_when_they_were_read():
    weights = np.arange(1.0, 5.0)

    def f(x):
        weights.flags.writeable = False
        before = x * weights
        weights.flags.writeable = True
        weights[:] *= 2
        return before, x * weights

    before, after = geoopt.compile(f, np.ones(4))(np.ones(4))
    np.testing.assert_array_equal(before, [1, 2, 3, 4])
    np.testing.assert_array_equal(after, [2, 4, 6, 8])


def test_fixed_arguments_are_constants():
    graph = trace(lambda x, k: x * k, (np.ones(3), geoopt.fixed(np.array([1.0, 2, 3]))))[0].graph
    assert [n.op for n in graph.nodes] == ["variable", "constant", "multiply"]


def branch(x):
    if x[0] > 0:
        return x
    return x[1:]


OUTSIDE = np.zeros(3)  # made before tracing: a NumPy array for good
EYE = sp.eye_array(3)
CASES = {
    "branch": (branch, geoopt.BranchError, "if x[0] > 0:", "np.where"),
    "float": (lambda x: x * len("%g" % x[0]), geoopt.TracingError, '"%g" % x[0]', "np.sqrt for math.sqrt"),  # noqa: UP031
    "filling": (lambda x: OUTSIDE.__setitem__(0, x[0]), geoopt.TracingError, "__setitem__(0", "np.zeros_like(x)"),
    "matrix of SciPy": (lambda x: sp.csr_array(x), geoopt.TracingError, "sp.csr_array(", "rows and columns"),
    "method of SciPy": (lambda x: EYE.maximum(from_diagonal(x)), geoopt.TracingError, "", "if a value is symbolic"),
    "operator": (lambda x: sp.eye_array(3).__add__(from_diagonal(x)), geoopt.TracingError, "", "write the operator"),
    "unsupported function": (lambda x: np.linalg.eigh(x), geoopt.UnsupportedError, "np.linalg.eigh(x)", "eigh"),
    "unsupported ufunc": (lambda x: np.frexp(x), geoopt.UnsupportedError, "np.frexp(x)", "frexp"),
    "broadcast": (lambda x: x + x[:2], geoopt.ShapeError, "x + x[:2]", "(3,) and (2,)"),
    "array": (lambda x: np.array([x[:1], x[:2]]), geoopt.TracingError, "np.array([x[:1]", "np.stack"),
    "in place": (lambda x: np.add(x, 1.0, out=OUTSIDE), geoopt.UnsupportedError, "out=OUTSIDE", "x = x + y"),
    "assignment": (lambda x: x.__setitem__(0, [1.0, 2.0]), geoopt.ShapeError, "__setitem__", "shape (2,)"),
    "symbolic index": (lambda x: np.ones(3)[0] + x[x], geoopt.TracingError, "x[x]", "np.where"),
    "complex": (lambda x: x * 1j, geoopt.UnsupportedError, "x * 1j", "real and imaginary"),
    "text": (lambda x: f"{x[0]:.3f}", geoopt.UnsupportedError, "", "format what the program returns"),
    "reshape": (lambda x: x.reshape(2, 2), geoopt.ShapeError, "x.reshape(2, 2)", "(3,) into (2, 2)"),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_say_what_where_and_what_to_do(case):
    function, kind, source, advice = CASES[case]
    with pytest.raises(kind) as caught:
        geoopt.compile(function, np.ones(3))
    message = str(caught.value)
    assert advice in message
    if source:
        assert source in message and f"{__file__}:" in message


def test_an_index_out_of_bounds_names_the_line():
    with pytest.raises(IndexError, match="out of bounds") as caught:
        geoopt.compile(lambda x: x[[0, 7]], np.ones(3))
    assert "x[[0, 7]]" in str(caught.value)


def test_a_refusal_that_the_code_catches_is_raised_at_the_end():
    def robust(x):
        try:
            return np.unique(x)
        except Exception:
            return np.zeros_like(x)

    with pytest.raises(geoopt.UnsupportedError, match=r"np.unique\(x\)") as caught:
        geoopt.compile(robust, np.ones(3))
    assert "caught this error" in caught.value.__notes__[0]


def test_code_may_ask_whether_there_is_an_attribute():
    def of_either(x):
        try:
            return x.toarray()
        except AttributeError:
            return x * (2 if hasattr(x, "todense") else 3)

    np.testing.assert_array_equal(geoopt.compile(of_either, np.ones(3))(np.ones(3)), 3)


def test_what_libraries_catch_is_theirs():
    x, W = np.ones(3), sp.eye_array(3)
    np.testing.assert_array_equal(geoopt.compile(lambda x: W @ x, x)(x), x)  # SciPy tries, and asks for help
    with pytest.raises(geoopt.BranchError):  # and the next trace knows nothing of this one's refusals
        geoopt.compile(branch, x)
    geoopt.compile(lambda x: 2 * x, x)


def test_a_function_that_returns_nothing_is_refused_and_told_what_it_fills():
    def double(x, out, other):
        out[:] = 2 * x

    with pytest.raises(geoopt.ArgumentError, match="double returns nothing; it fills 'out': return"):
        geoopt.compile(double, np.ones(3), np.ones(3), other=np.ones(3))
    with pytest.raises(geoopt.ArgumentError, match="nothing: return"):
        geoopt.compile(lambda x: None, np.ones(3))


def test_masks_are_not_dropped():
    masked = np.ma.masked_array([1.0, 2, 3], [False, True, False])
    with pytest.raises(geoopt.ArgumentError, match=r"'x': masked arrays are not supported; give values\.filled"):
        geoopt.compile(lambda x: 2 * x, masked)
    with pytest.raises(geoopt.UnsupportedError, match="masked arrays"):
        geoopt.compile(lambda x: x * masked, np.ones(3))
