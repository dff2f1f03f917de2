"""Loops that run as often as values decide: the results and numbers of turns are those of NumPy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

import geoopt
from geoopt.evaluate import evaluate
from geoopt.lift import lift
from geoopt.phases import phases
from geoopt.stages import Context
from geoopt.trace import trace

N = 12
A = sp.diags_array([np.full(N - 1, -1.0), np.full(N, 2.2), np.full(N - 1, -1.0)], offsets=[-1, 0, 1]).tocsr()


def bisection(x):
    a, b = 0, x[0] + 9
    while b - a > 1e-9:
        m = 0.5 * (a + b)
        if m**3 > x[1]:
            b = m
        else:
            a = m
    return m, a


def roots(x):
    y, count = x.copy(), 0
    while True:
        step = (y**3 - x) / (3 * y**2)
        y -= step
        count += 1
        if np.max(np.abs(step)) < 1e-12:
            break
    return y, count


def without_condition(x):
    y, count = x.copy(), 0
    while True:
        step = (y**3 - x) / (3 * y**2)
        y, count = y - step, count + 1
        if np.max(np.abs(step)) < 1e-12:
            return y, count


def limited(x):
    y, count = x[0], 0
    while y > 1e-3 and count < 50:
        y, count = y * 0.9, count + 1
    return y, count


def returned(x):
    total, i = 0.0, 0
    while i < 1000:
        total, i = total + x[0], i + 1
        if total > 10:
            return total, i
    return -total, i


def with_continue(x):
    s, total = x[0], 0.0
    while s < 20:
        s *= 1.5
        if s < 3:
            continue
        total += s
    else:
        total += 100
    return s, total


def nested(x):
    s, total = x[0], 0.0
    while s < 50:
        t = s
        while t > 1:
            t, total = t / 2, total + 1
        s = s * 2 + t
    return s, total


def one_by_one(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        value = x[i]
        while value > 1:
            value = value / 3
        out[i] = value
    return out


def one_after_the_other(x):
    a, b = x[0], x[1]
    while a > 1:
        a = a / 2
    while b < 7:
        b = b + a
    return a, b


def no_turn(x):
    count = 0
    while x[0] < -100:
        x, count = x + 1, count + 1
    return x, count


def not_a_number(x):
    y = np.log(-x)
    while y[0] > 0:
        y = y - 1
    return y


def of_tuples(x):
    pair = x[0], x[1]
    while pair[0] < 100:
        pair = pair[0] + pair[1] + 1, pair[0]
    return pair


def conjugate_gradients(b):
    x = np.zeros(N)
    r = b - A @ x
    p, rr, count = r.copy(), r @ r, 0
    while np.sqrt(rr) > 1e-10:
        q = A @ p
        alpha = rr / (p @ q)
        x += alpha * p
        r -= alpha * q
        p, rr, count = r + (r @ r / rr) * p, r @ r, count + 1
    return x, count


def conjugate_gradients_of_a_range(b):
    x, r = np.zeros(N), b.copy()
    p, rr = r, r @ r
    for k in range(500):  # noqa: B007
        q = A @ p
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        after = r @ r
        if np.sqrt(after) < 1e-10:
            break
        p, rr = r + after / rr * p, after
    return x, k


def swapped(x):
    a, b, error = x.copy(), np.zeros_like(x), 1.0
    while error > 1e-8:
        b[:] = 0.5 * a + 0.1
        a, b = b, a
        error = np.abs(a - b).max()
    return a


def changed_before(x):
    b, e = x.copy(), 1.0
    while e > 1e-3:
        b *= 0.9
        e = e * 0.5 * (1 + 0 * np.abs(x).max())
        b = b + 0
    return b


def rows_of_an_array(x):
    X = x[:4].reshape(2, 2).copy()
    top = X[0]
    while np.abs(X).max() > 0.1:
        top *= 0.5
        X[1, :] = 0.4 * X[1] + 0.01 * X[0]
    return X, top


def implicit_step(x):
    y, error = x.copy(), 1.0
    while error > 1e-10:
        J = A + sp.diags_array(3 * y**2)
        step = spsolve(J.tocsc(), -(A @ y + y**3 - x))
        y = y + step
        error = np.linalg.norm(step)
    return y


def descent(x):
    def energy(y):
        return np.sum((y - x) ** 2) + np.sum(y**4)

    y, size = 0.0 * x, 1.0
    while size > 1e-6:
        g = geoopt.gradient(energy)(y)
        t = 1.0
        while t * (2 + 12 * np.max(y * y)) > 1:  # of the largest curvature
            t = t / 2
        y = y - t * g
        size = np.linalg.norm(g)
    return y


def last_of_a_range(x):
    s = x[0]
    for i in range(3, 300, 2):  # noqa: B007
        s = s * 1.3
        if s > 90:
            break
    else:
        s = -1.0
    return s, i


def history(x):
    kept, s = np.zeros(40), x[0]
    for i in range(40):
        s = s * 1.1
        kept[i] = s
        if s > 4:
            break
    return kept


def of_a_list(x):
    s = x[0]
    for w in [1.0, 2.0, 3.0, 4.0]:
        s = s * w
        if s > 4:
            break
    return s, w


def doubled(value):
    if value > 1:
        return value * 2
    return value * 3


def calls(x):
    value, count = x[0], 0.0
    while value < 1000:
        value, count = doubled(value), count + max(0.5, min(x[1], 2.0))
    return value, count


LOOPS = [
    *(
        bisection,
        roots,
        without_condition,
        limited,
        returned,
        with_continue,
        nested,
        one_by_one,
        one_after_the_other,
        no_turn,
    ),
    *(not_a_number, of_tuples, conjugate_gradients, conjugate_gradients_of_a_range, swapped, changed_before),
    *(rows_of_an_array, implicit_step, descent, last_of_a_range, calls),
]
UNROLLED = [history, of_a_list]
X = np.linspace(1.1, 2.3, N)


def flat(result) -> list[np.ndarray]:
    return [p for part in result for p in flat(part)] if isinstance(result, tuple) else [np.asarray(result, float)]


def assert_alike(got, wanted, tolerance=1e-9):
    for g, w in zip(flat(got), flat(wanted), strict=True):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize("function", LOOPS + UNROLLED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_numpy(function):
    before = function.__code__
    program = geoopt.compile(function, X.copy())
    assert function.__code__ is before
    assert bool(program.machine.phases and program.machine.phases.loops) is (function in LOOPS)
    for x in (X, X * 1.4, X * 0.2, X[::-1] * 3):
        assert_alike(program(x.copy()), function(x.copy()))


@pytest.mark.parametrize("function", [nested, conjugate_gradients, implicit_step, descent, with_continue])
def test_each_stage_means_the_same(function):
    wanted = flat(function(X.copy()))
    options = geoopt.Options()
    context = Context(options, np.dtype(float), True, False, None)
    traced, signature = trace(function, (X,))
    joined = lambda arrays: np.concatenate([np.ravel(a) for a in arrays])  # noqa: E731
    for record in (traced, lifted := lift(traced, context), phases(lifted, context)):
        np.testing.assert_allclose(joined(evaluate(record, [X])), joined(wanted), rtol=1e-9, atol=1e-12)
    assert signature.paths == 1
    assert "by turns of" in geoopt.view(function, X, stage="phases")


def test_batches_threads_devices_and_jit():
    items = np.stack([X, 2 * X, X[::-1] / 3])
    program = geoopt.compile(conjugate_gradients, X, options=geoopt.Options(threads=2))
    x, counts = program.batched(3)(items)
    for item, found, count in zip(items, x, counts, strict=True):
        assert_alike((found, count), conjugate_gradients(item))
    on_host = geoopt.compile(bisection, X, device="cuda-on-host")
    assert_alike(on_host(X), bisection(X))
    assert_alike(geoopt.jit(roots)(X), roots(X))
    single = geoopt.compile(limited, X, dtype=np.float32)
    assert_alike(single(X.astype(np.float32)), limited(X), 1e-5)
    assert_alike(copy.deepcopy(program)(X), conjugate_gradients(X))


def test_a_turn_that_there_is_not_fails_in_nothing():
    def until_singular(x):
        a = x[:2].copy()
        while a[1] > 0.5:  # the matrix is singular after the last turn
            a = np.maximum(np.linalg.norm(geoopt.solve(sp.diags_array(a).tocsr(), np.ones(2))) * 0 + a - 0.5, 0)
        return a

    x = np.array([0.5, 1.0])
    np.testing.assert_allclose(geoopt.compile(until_singular, x)(x), until_singular(x), atol=1e-12)


def appended(x):
    found, s = [], x[0]
    while s < 100:
        s = s * 2
        found.append(s)
    return s


def growing(x):
    while np.sum(x) < 1e6:
        x = np.concatenate([x, x])
    return x


def of_attributes(x):
    class Point:
        value = x[0]

    point = Point()
    while point.value < 100:
        point.value = point.value * 2
    return point.value


def of_one_array(x):
    a, b = x.copy(), x.copy()
    while b[0] > 1e-3:
        b = a
        a *= 0.5
        b = a
    return a, b


def changing_nothing(x):
    while x[0] > 100 * x[1]:
        pass
    return x


def changes_texts(x):
    s, text = x[0], "a"
    while s < 100:
        s, text = s * 2, text + "b"
    return s, text


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (appended, "change a list"),
        (growing, "change the shape of 'x'"),
        (of_attributes, "change what is no variable of the function"),
        (of_one_array, "have 'b' and another variable stand for one array, and change it"),
        (changing_nothing, "run a loop that ends where values decide, and changes nothing"),
        (changes_texts, "change 'text', which is a str"),
    ],
)
def test_what_has_no_state_is_refused(function, why):
    with pytest.raises(geoopt.BranchError, match=rf"(?s)cannot {why}.*test_while_loops.py") as error:
        geoopt.compile(function, X)
    assert "one step" in str(error.value) or "array" in str(error.value) or "x = self.x" in str(error.value)


def test_what_programs_with_loops_do_not():
    program = geoopt.compile(limited, X)
    for call, why in (
        (lambda: pickle.dumps(program), "cannot be saved or pickled"),
        (lambda: program.source("c"), "has a loop that values end"),
        (lambda: program.export("nowhere"), "has a loop that values end"),
    ):
        with pytest.raises(geoopt.ArgumentError, match=why):
            call()
    for differentiate in (geoopt.gradient, geoopt.hessian):
        with pytest.raises(geoopt.UnsupportedError, match="derivatives of a loop"):
            differentiate(lambda x: limited(x)[0])(X)
