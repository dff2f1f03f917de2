"""Branches on one unknown number: programs choose between what the code gives along its paths, as Python would."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt

V = np.array([0.3, -1.2, 0.7])


def unit(v):
    norm = np.linalg.norm(v)
    if norm == 0:
        return v
    return v / norm


def slerp(a, b, t):
    cosine = np.clip(a @ b, -1, 1)
    if cosine > 0.9995:
        return unit(a + t * (b - a))
    if cosine < 0:
        b, cosine = -b, -cosine
    angle = np.arccos(cosine)
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


def in_ball(p):
    if np.linalg.norm(p) <= 1:
        return True
    return False


def root_of_two(x):
    for _ in range(8):
        step = (x * x - 2) / (2 * x)
        x = x - step
        if abs(step) < 1e-6:
            break
    return x


def length_or_error(v):
    norm = np.linalg.norm(v)
    if norm > 1e-12:
        return v / norm
    else:
        raise ValueError("no direction")


def checked_beside_a_branch(x):
    if x[0] < 0:
        return -x
    if x[0] < 1e-9:
        raise ValueError
    return 10 * x


def of_three_kinds(x):
    if x[0] < 0:
        return -x
    elif x[0] < 2:
        return 3 * x
    else:
        raise ValueError


def told_before_it_raises(V, is_strict=True):
    if not np.allclose(V.T, -V):
        message = f"no skew-symmetric matrix: {V}"
        if is_strict:
            raise ValueError(message)
        print(message)
    return 2 * V


def two_patterns(x):
    return sp.diags(x).tocsr() if x[0] > 0 else sp.csr_array(np.ones((3, 3)))


class Pair(NamedTuple):
    first: float
    rest: np.ndarray


@dataclasses.dataclass
class Found:
    name: str
    values: np.ndarray


def of_many_kinds(x):
    if x[0] > 0:
        return sp.diags(x).tocsr(), {"a": 1, "b": [x]}, Pair(2.0, np.ones(2)), Found("all", x), x > 0, "same"
    return (
        sp.eye(3, format="csr"),
        {"a": x[1], "b": [np.zeros(3)]},
        Pair(x[2], np.ones(2)),
        Found("all", -x),
        x < 9,
        "same",
    )


def writes_to_its_argument(x):
    if x[0] > 0:
        x[1:] = 0.0
        return x
    x[0] = 5.0
    return x * 2


def in_a_function_that_it_calls(x):
    return np.stack([unit(x), unit(x - V)])


def three_in_order(x):
    return np.stack(sorted([x[0], x[1], x[2]]))


def truth_of_a_number(x):
    return x[1:] if x[0] else x[:2]


def with_booleans(x):
    return x if (x[0] > 0 and not x[1] < 0) or x[2] == 0.7 else -x


CASES = [
    (unit, [V], [0 * V]),
    (slerp, [unit(V), np.eye(3)[0], 0.3], [np.eye(3)[0], np.eye(3)[0], 0.5], [unit(V), np.eye(3)[1], 0.1]),
    (in_ball, [V], [V / 3]),
    (root_of_two, [1.3], [1e6], [np.sqrt(2)]),
    (of_many_kinds, [V], [-V]),
    (writes_to_its_argument, [V], [-V]),
    (in_a_function_that_it_calls, [V], [2 * V]),
    (three_in_order, [V], [V[::-1].copy()], [-V]),
    (truth_of_a_number, [V], [0 * V], [np.full(3, np.nan)]),
    (length_or_error, [V], [-V]),
    (checked_beside_a_branch, [-V], [V], [np.abs(V)]),
    (of_three_kinds, [-V], [V], [-2 * V]),
    (told_before_it_raises, [np.array([[0.0, 1.0], [-1.0, 0.0]])], [np.zeros((2, 2))]),
    (two_patterns, [V], [-V], [np.array([np.nan, 1.0, np.inf])]),
    (with_booleans, [V], [-V], [np.abs(V)], [V + 0.1]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_results_are_those_of_the_path_that_python_takes(case):
    function, *inputs = case
    program = geoopt.compile(function, *inputs[0])
    for given_now in inputs:
        copies = [np.array(x) if np.ndim(x) else x for x in given_now]
        assert_same(program(*given_now), function(*copies))


def assert_same(got, want):
    if isinstance(want, dict):
        assert list(got) == list(want)
        got, want = list(got.values()), list(want.values())
    if dataclasses.is_dataclass(want):
        got, want = dataclasses.astuple(got), dataclasses.astuple(want)
    if isinstance(want, (list, tuple)):
        assert type(got) is type(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif isinstance(want, str):
        assert got == want
    else:
        got, want = (x.toarray() if sp.issparse(x) else np.asarray(x) for x in (got, want))
        assert got.shape == want.shape and (want.dtype != bool or got.dtype == bool)
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)


def huber(x):
    size = np.sqrt(np.sum(x * x))
    return 0.5 * size * size if size < 1 else size - 0.5


def test_derivatives_are_those_of_the_path_that_is_taken():
    direction = np.array([1.0, -2.0, 0.5])
    slope = geoopt.compile(geoopt.gradient(huber), V)
    bend = geoopt.compile(geoopt.hessian(huber), V)
    product = geoopt.compile(lambda x: geoopt.hessian_product(huber)(x, direction), V)
    along = geoopt.compile(lambda x: geoopt.jacobian(lambda y: y if y[0] > 0.1 else y * y)(x * 1.0), V)
    for x in (V, 0.1 * V):
        size = np.linalg.norm(x)
        curvature = np.eye(3) if size < 1 else (np.eye(3) - np.outer(x, x) / size**2) / size
        np.testing.assert_allclose(slope(x), x / max(1.0, size))
        np.testing.assert_allclose(bend(x).toarray(), curvature, atol=1e-15)
        np.testing.assert_allclose(product(x), curvature @ direction)
        np.testing.assert_allclose(along(x).toarray(), np.diag(np.ones(3) if x[0] > 0.1 else 2 * x))


def test_what_the_given_values_raise_is_raised():
    for function, x in ((length_or_error, 0 * V), (checked_beside_a_branch, 0 * V), (of_three_kinds, 9 * np.ones(3))):
        with pytest.raises(ValueError):
            geoopt.compile(function, x)


def test_errors_of_libraries_on_other_paths_refuse_the_branch():
    """They may come of what stands in for values."""

    def other(x):
        return x if x[0] > 0 else np.frombuffer(x)

    with pytest.raises(geoopt.BranchError, match=r"the other way ends by TypeError: [^$]*if x\[0\] > 0"):
        geoopt.compile(other, V)
    with pytest.raises(geoopt.TracingError, match="compiled code does not take unknown values: a bytes-like object"):
        geoopt.compile(other, -V)


def test_what_another_path_writes_is_refused_too():
    def counting(x, n):
        if x[0] > 0:
            return x
        n += 1
        return x * n

    with pytest.raises(geoopt.ArgumentError, match="copy the argument first"):
        geoopt.compile(counting, V, np.arange(3))


def two_shapes(x):
    return x[:2] if x[0] > 0 else x


def two_sizes(x):
    return sp.diags(x).tocsr() if x[0] > 0 else sp.eye(2, format="csr")


def two_kinds(x):
    return x if x[0] > 0 else (x, x)


def nothing_or_a_number(x):
    return None if x[0] > 0 else x[0]


def two_texts(x):
    return x, "up" if x[0] > 0 else "down"


def a_dictionary_more(x):
    return {"a": x} if x[0] > 0 else {"a": x, "b": x}


def roots(x):
    """A generator is not rewritten to run both sides."""
    for v in x:
        yield np.sqrt(v) if v > 0 else v


def for_each_element(x):
    return np.stack(list(roots(x)))


def of_many_entries(x):
    return x if x > 0 else -x


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (two_shapes, r"arrays of shapes \(2,\) and \(3,\)"),
        (two_sizes, r"matrices of shapes \(3, 3\) and \(2, 2\)"),
        (two_kinds, "an array and tuple"),
        (nothing_or_a_number, "NoneType and a number"),
        (two_texts, "two of str"),
        (a_dictionary_more, "two of dict"),
        (of_many_entries, "3 symbolic values"),
    ],
)
def test_what_leaves_no_choice_is_refused_with_its_line(function, why):
    with pytest.raises(geoopt.BranchError, match=rf"cannot branch on .*{why}") as caught:
        geoopt.compile(function, V)
    _, line, remedy = str(caught.value).splitlines()
    assert "test_branches.py:" in line and ("np.where" in remedy or "compile one step" in remedy)


def test_more_paths_than_a_few_are_refused():
    with pytest.raises(geoopt.BranchError, match=r"more than 256 paths[^$]*if v > 0"):
        geoopt.compile(for_each_element, np.ones(9))
    x = np.array([1.0, -2.0, 3.0, 0.0, 4.0, -1.0])
    np.testing.assert_array_equal(geoopt.compile(for_each_element, np.ones(6))(x), for_each_element(x))


def test_fewer_paths_are_taken_where_each_makes_many_scalars():
    def f(x, many):
        return np.sum(many * sum(roots(x)))

    with pytest.raises(geoopt.BranchError, match="more than 32 paths"):
        geoopt.compile(f, np.ones(6), np.ones(50_000))


def largest_column(x, w):
    k = np.argmax(x)
    return x[k] * w[:, k] + x[w[0].argmin()]


def test_the_place_of_an_extreme_is_known_on_each_path():
    w = np.random.default_rng(0).normal(size=(5, 4))
    program = geoopt.compile(largest_column, np.arange(4.0), w)
    assert program.signature.paths == 16
    cases = [
        [0.0, 1, 2, 3],
        [3, 2, 3, 1],
        [np.nan, 9, 1, 1],
        [2, np.nan, 3, np.nan],
        [np.inf, np.inf, 0, 1],
        [1, 1, 1, 1],
    ]
    for x in (np.array(case, float) for case in cases):
        for other in (w, -w, np.round(w)):
            np.testing.assert_array_equal(program(x, other), largest_column(x, other))


def test_known_arguments_are_not_written_to_twice():
    def from_one(x, F):
        F -= 1
        return x[F] if x[0] > 0 else -x[F]

    F = np.array([1, 2, 3])
    with pytest.raises(geoopt.ArgumentError, match="copy the argument first"):
        geoopt.compile(from_one, V, F)
    assert F.flags.writeable

    def copied(x, F):
        return from_one(x, F.copy())

    F = np.array([1, 2, 3])
    np.testing.assert_array_equal(geoopt.compile(copied, V, F)(-V), V)


def test_code_without_branches_runs_once():
    runs = []
    geoopt.compile(lambda x: runs.append(0) or 2 * x, V)
    assert len(runs) == 1


def test_programs_tell_how_many_paths_they_choose_between():
    program = geoopt.compile(three_in_order, V)
    assert program.report()["paths"] == 8 and "the results of 8 paths" in str(program)
    assert "paths" not in str(geoopt.compile(lambda x: 2 * x, V))


TREES = st.recursive(
    st.tuples(st.sampled_from("xyz"), st.floats(-2, 2)),
    lambda tree: st.tuples(st.sampled_from("xyz"), st.sampled_from("<>="), st.floats(-1, 1), tree, tree),
    max_leaves=12,
)


@given(TREES, st.lists(st.tuples(*[st.sampled_from([-1.0, -0.3, 0.0, 0.4, 2.0])] * 3), min_size=3, max_size=6))
def test_random_trees_of_branches(tree, points):
    def walk(tree, values):
        if len(tree) == 2:
            return values[tree[0]] * tree[1]
        name, sign, bound, yes, no = tree
        value = values[name]
        if value < bound if sign == "<" else value > bound if sign == ">" else value == bound:
            return walk(yes, {**values, name: value * 0.5 + 0.1})
        return 1.0 - walk(no, values)

    def function(x, y, z):
        return walk(tree, {"x": x, "y": y, "z": z})

    program = geoopt.compile(function, *points[0])
    for point in points:
        np.testing.assert_allclose(program(*point), function(*point), rtol=1e-13, atol=1e-14)


def _root(value):
    if value < 0:
        raise ValueError("negative")
    return np.sqrt(value)


def _root_or_message(value):
    if value < 0:
        raise ValueError("negative")
    else:
        return np.sqrt(value)


def caught_at_once(x):
    try:
        if x[0] < 0:
            raise ValueError
        found = x[1]
    except ValueError:
        found = 2 * x[1]
    return found


def caught_by_callers(x):
    try:
        return _root(x[0]) + x[1]
    except (KeyError, ArithmeticError, ValueError):
        return x[1]


def caught_assertion(x):
    try:
        assert x[0] > 0
        return x[0]
    except AssertionError:
        return 3 * x[0]


def caught_of_both_sides(x):
    try:
        return _root_or_message(x[0])
    except Exception:
        return -x[0]


@pytest.mark.parametrize("function", [caught_at_once, caught_by_callers, caught_assertion, caught_of_both_sides])
def test_errors_that_the_code_catches_are_branches(function):
    for first in (np.array([1.0, 3.0]), np.array([-1.0, 3.0])):
        program = geoopt.compile(function, first)
        for x in (first, -first, first * 2):
            np.testing.assert_allclose(program(x), function(x), rtol=1e-15)


def test_errors_that_nobody_catches_are_no_branches():
    def other(x):
        try:
            return _root(x[0])
        except (ImportError, np.linalg.LinAlgError):
            return 0.0

    def again(x):
        try:
            return _root(x[0])
        except ValueError:
            raise
        finally:
            assert x[1] > 0

    for function in (other, again):
        program = geoopt.compile(function, np.array([1.0, 3.0]))
        assert len(program.plan.kernels) == 1 and np.isnan(program(np.array([-1.0, 3.0])))
        with pytest.raises(ValueError, match="negative"):
            geoopt.compile(function, np.array([-1.0, 3.0]))


def test_errors_that_are_caught_for_each_of_many_elements_are_refused():
    def each(x):
        found = []
        for value in x:
            try:
                found.append(_root(value))
            except ValueError:
                found.append(0.0 * value)
        return np.array(found)

    with pytest.raises(geoopt.BranchError, match=r"(?s)cannot .*if value < 0"):
        geoopt.compile(each, np.linspace(0.5, 1, 40))


def negated_check(x):
    """The check is made on the path of the given values; no other is left by it."""
    q = x
    if abs(1 - q @ q) > 1e-12:
        q = q / np.sqrt(q @ q)
    if not np.isclose(q @ q, 1.0) or (q @ q > 2 and not q[0] < 9):
        raise ValueError("not normal")
    assert not q @ q > 2 or q[0] > 0
    return q


def test_checks_with_not_leave_other_paths():
    given = np.array([0.6, 0.8])
    program = geoopt.compile(negated_check, given)
    for x in (given, given * 1.02, np.array([3.0, 4.0])):
        np.testing.assert_allclose(program(x), negated_check(x), rtol=1e-14)
