"""Code with a branch for each element: both sides are run, and results are those of the one that Python takes."""

from __future__ import annotations

import dataclasses
import linecache
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt

RNG = np.random.default_rng(0)
x, P = RNG.normal(size=40), RNG.normal(size=(9, 3))


def filled(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] < 0:
            out[i] = -x[i]
        elif x[i] < 1:
            out[i] += x[i] ** 2
        else:
            y = x[i] * 2
            out[i] = y
    return out


def repulsion(P):
    force = np.zeros_like(P)
    for i in range(len(P)):
        for j in range(i + 1, len(P)):
            d = P[j] - P[i]
            r = np.linalg.norm(d)
            if r > 1.2 or r == 0:
                continue
            force[i] -= (1.2 - r) * d / r
            force[j] += (1.2 - r) * d / r
        force[i, 1] = clamped(force[i, 1], -0.5, 0.5)
    return force


def clamped(v, low, high):
    return low if v < low else high if v > high else v


def early(v):
    if v < 0:
        return 0.0
    if v < 0.5:
        return v**2
    return v


def returns_early(x):
    return np.array([early(v) for v in x])


def first_above_one(x):
    for v in x:
        if v > 1:
            return v
    return -1.0


def before_it_breaks(x):
    n, total = 0, 0.0
    for v in x:
        if v > 1.5:
            break
        n += 1
        total += v
    else:
        total = -1.0
    return n + total


def least(x):
    best, place = None, -1
    for i, v in enumerate(x):
        if best is None or v < best:
            best, place = v, i
    return best, place + 0 * x[0]


@dataclasses.dataclass
class Hit:
    t: float
    normal: np.ndarray


def nearest(P):
    hit = Hit(1e9, np.zeros(3))
    again = Hit(1e9, np.zeros(3))
    for p in P:
        t = p @ p
        if t < hit.t:
            hit = Hit(t, p / np.sqrt(t))
            again.t = t
            again.normal = p / np.sqrt(t)
    return hit, again


def pairs(x):
    best, count, named = [0.0, -1], 0.0, {"v": 0.0}
    for i, v in enumerate(x):
        if v > best[0]:
            best = [v, i]
            named = {"v": v}
        count += len(np.array(best)) + np.array(best)[1] + named["v"]
    return best, count


def swapped(x):
    x = x.copy()
    for i in range(12):
        for j in range(i):
            if x[i] < x[j]:
                x[i], x[j] = x[j], x[i]
    return x[:12]


def sparse(P):
    A = sp.lil_matrix((len(P), len(P)))
    for i in range(len(P)):
        for j in range(len(P)):
            d = np.sqrt((P[i] - P[j]) @ (P[i] - P[j]))
            if i != j and not 1.5 <= d < 3:
                A[i, j] = np.exp(-d)
    return A.tocsr() @ np.ones(len(P))


def with_lists_and_functions(P):
    total, counts = np.zeros(3), [0.0, 0.0]
    for i in range(len(P)):
        for j in range(i):
            if P[i, 0] > P[j, 0]:
                counts[1] += P[j, 1]
                continue
            differences = []
            for k in range(3):
                differences.append(P[i, k] - P[j, k])
            weights, copy = np.zeros(3, int), P[i].copy()
            weights[1], copy[0] = 2, 5
            add(total, np.array(differences) * weights + copy)
            counts[0] = counts[0] + 1
    return total, counts[0] + 0 * P[0, 0], counts[1]


def add(to, value):
    to += value


def sums(x):
    return sum(v for v in x if v > 0), sum([v * w for v in x[:4] for w in x if 0 < w < v])


def named_in_conditions(x):
    total = 0.0
    for v in x:
        if (root := np.sqrt(abs(v))) > 0.5:
            total += root
    return total + sum([w if (w := v * v) < 0.5 else -w for v in x]) + w


def changes_what_it_chose(x):
    total, hit, points = 0.0, Hit(0.0, np.zeros(2)), x.reshape(-1, 4).copy()
    for i, v in enumerate(x[:10]):
        if v > 0:
            n = np.zeros(2)
            n[0] += 1
        else:
            n = v * np.ones(2)
        n[1] = 5
        n *= 2
        if v > hit.t:
            hit = Hit(v, n)
        hit.t += 1
        p = points[i]
        if p[0] > 0:
            p = p * 2
        points[i] = p
        pair = [v, v * 2] if v > 0 else [v, -v]
        total += n[0] + n[1] + pair[0] * pair[1]
    return total, hit.t, points


def a_while_that_is_known(x):
    k = 0.0
    for i in range(len(x) - 1):
        t = 0
        while t < 3:
            t += 1
            if x[i] * x[i + 1] < 0:
                k += 1 / t
    return k


def in_a_try(x):
    m = 0.0
    for v in x:
        if v > 0:
            m = max(m, v)
            if v > 1:
                m = m * 0.5
                continue
            m += 1
        else:
            try:
                m -= 0.1 * v
            finally:
                m *= 0.5
    return m


def heap(x, i=0):
    if i >= len(x):
        return 0.0
    if x[i] > 0:
        return x[i] + heap(x, 2 * i + 1)
    return heap(x, 2 * i + 2) - x[i]


def checked(x):
    k = np.ones(len(x))
    for i in range(len(x)):
        if x[i] > 0:
            if x[i] > 50:
                raise ValueError("too large")
            k[i] = np.sqrt(x[i])
            assert k[i] > 0
        elif x[i] == 0:
            raise ValueError("zero")
    return k


def asserted(x):
    k = 0.0
    for v in np.minimum(x, 2.0):
        if v > 0:
            assert v < 2.0
            k += v
    return k


CASES = [
    *((f, x) for f in (filled, returns_early, first_above_one, before_it_breaks, least, swapped, sums)),
    *((f, x) for f in (pairs, changes_what_it_chose, a_while_that_is_known, in_a_try, checked, named_in_conditions)),
    *((f, P) for f in (repulsion, nearest, sparse, with_lists_and_functions)),
]


def compared(program, function, value):
    got, want = program(value), function(value.copy())
    for g, w in zip(flat(got), flat(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-13)


def flat(result):
    if dataclasses.is_dataclass(result):
        result = dataclasses.astuple(result)
    return [part for r in result for part in flat(r)] if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize(("function", "value"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_results_are_those_of_the_sides_that_python_takes(function, value):
    before = function.__code__
    program = geoopt.compile(function, value)
    assert function.__code__ is before and program.report()["paths"] == 1
    for k in range(5):
        compared(program, function, np.random.default_rng(k).normal(size=value.shape) * (0.2, 1, 2)[k % 3])


def test_few_paths_are_still_followed():
    compared(geoopt.compile(heap, x[:5]), heap, -x[:5])


def test_the_number_of_nodes_is_that_of_the_branches():
    """Of np.where for each, not of the paths through them."""

    def both(x):
        return sum(np.sqrt(v) if v > 0 else -v for v in x)

    few, many = (geoopt.compile(both, np.ones(n)).report()["scalars"] / n for n in (20, 80))
    assert many < 1.5 * few


def test_derivatives_are_those_of_the_side_that_is_taken():
    def energy(P):
        total = 0.0
        for i in range(len(P)):
            for j in range(i):
                r = np.sqrt(np.sum((P[i] - P[j]) ** 2))
                if r < 1:
                    total += (1 - r) ** 2
        return total

    slope = geoopt.compile(geoopt.gradient(energy), P)(P)
    step = 1e-6 * RNG.normal(size=P.shape)
    np.testing.assert_allclose(np.sum(slope * step) * 2, energy(P + step) - energy(P - step), rtol=1e-6)


def test_what_the_given_values_raise_is_raised():
    for wrong, what in ((60.0, "too large"), (0.0, "zero")):
        with pytest.raises(ValueError, match=what):
            geoopt.compile(checked, np.append(x, wrong))
    with pytest.raises(AssertionError):
        geoopt.compile(asserted, np.append(x, 2.0))
    compared(geoopt.compile(asserted, np.clip(x, -1, 1)), asserted, -np.clip(x, -1, 1))


def appends(x):
    found = []
    for v in x:
        if v > 0:
            found.append(v)
    return sum(found)


def counts_in_integers(x):
    histogram = np.zeros(2, int)
    for v in x:
        if v > 0:
            histogram[1] += 1
    return histogram * x[0]


def searches(x):
    i = 0
    while True:
        if x[i] > 0:
            break
        i += 1
    return x[i]


def none_of(x):
    found = None
    for v in x:
        if v > 0.5:
            found = v
    return 0.0 if found is None else found


def texts(x):
    found = 0.0
    for v in x:
        kind = "up" if v > 0 else "down"
        found += v if kind == "up" else -v
    return found


def other_lengths(x):
    for v in x:
        if v > 0:
            part = x[:2]
        else:
            part = x[:3]
    return part


def without_end(x):
    def halved(v):
        if v < 1:
            return v
        return halved(v / 2)

    return halved(x[0])


def new_keys(x):
    found = {}
    for i, v in enumerate(x):
        if v > 0:
            found[i] = v
    return found


def generates(x):
    def positive():
        for v in x:
            if v > 0:
                yield v

    return sum(positive())


def changes_either(x):
    a, b = np.zeros(2), np.ones(2)
    for v in x:
        changed = a if v > 0 else b
        changed[0] += v
    return a, b


def reads_after_a_change(x):
    a, b, total = np.zeros(2), np.ones(2), 0.0
    for v in x:
        if v > 0:
            seen = a
        else:
            seen = b
        a[0] += 1
        total += seen[0]
    return total


def changes_an_object(x):
    a, b = Hit(0.0, x), Hit(1.0, x)
    for v in x:
        changed = a if v > 0 else b
        changed.t += v
    return a.t, b.t


def changes_a_list(x):
    a, b = [0.0, 1.0], [2.0, 3.0]
    for v in x:
        changed = a if v > 0 else b
        changed[0] += v
    return a[0], b[0]


def appends_to_either(x):
    a, b = [0.0, 1.0], [2.0, 3.0]
    for v in x:
        changed = a if v > 0 else b
        changed.append(v)
    return a[0]


def changes_known_numbers(x):
    a, b = np.zeros(2, int), np.zeros(2, int)
    for v in x:
        changed = a if v > 0 else b
        changed[0] += 1
    return a * x[:2], b * x[:2]


def changes_a_row(x):
    out = np.zeros((len(x), 2, 3))
    for i, v in enumerate(x):
        row = out[i, 0] if v > 0 else out[i, 1]
        row[0] += v
    return out


ALIASES = (
    changes_a_row,
    changes_known_numbers,
    appends_to_either,
    changes_either,
    reads_after_a_change,
    changes_an_object,
    changes_a_list,
)


REFUSED = [
    *((function, "a variable may|change a list") for function in ALIASES),
    (appends, "change a list .*found.append.v.[^$]*np.zeros"),
    (counts_in_integers, "put something into an array of known numbers [^$]*np.zeros"),
    (searches, "cannot index with a symbolic value"),
    (none_of, "between a number and NoneType[^$]*found = v"),
    (texts, "between two of str"),
    (other_lengths, r"between arrays of shapes \(2,\) and \(3,\)"),
    (without_end, "more than 32 symbolic values"),
    (new_keys, "something new into a dict"),
    (generates, "more than 32 symbolic values"),
]


@pytest.mark.parametrize(("function", "why"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_cannot_be_chosen_between_is_refused(function, why):
    before = function.__code__
    with pytest.raises(geoopt.TracingError, match=f"(?s){why}") as caught:
        geoopt.compile(function, x)
    assert "test_both_sides.py:" in str(caught.value) and function.__code__ is before


def test_other_threads_call_the_functions_meanwhile():
    want, wrong, compiled, stop = filled(x), [], [], threading.Event()

    def call():
        while not stop.is_set():
            if not np.array_equal(filled(x), want):
                wrong.append(1)

    threads = [
        threading.Thread(target=call),
        threading.Thread(target=lambda: compiled.append(geoopt.compile(filled, x[:30]))),
    ]
    before = filled.__code__
    for thread in threads:
        thread.start()
    geoopt.compile(filled, x)
    threads[1].join()
    stop.set()
    threads[0].join()
    assert not wrong and filled.__code__ is before and x.flags.writeable
    np.testing.assert_array_equal(compiled[0](x[:30]), filled(x[:30]))


# -- random programs: halves and sums of few binary digits are exact, so that comparisons are decided alike ---------

EXPRESSIONS = st.recursive(
    st.sampled_from(["v", "s", "t", "out[i]", "out[0]", "x[0]", "0.5", "-1.0", "i"]),
    lambda e: st.one_of(
        st.builds("({} + {})".format, e, e),
        st.builds("({} - {})".format, e, e),
        st.builds("(0.5 * {})".format, e),
        st.builds("abs({})".format, e),
        st.builds("max({}, {})".format, e, e),
    ),
    max_leaves=3,
)
CONDITIONS = st.recursive(
    st.one_of(
        st.builds("{} < {}".format, EXPRESSIONS, EXPRESSIONS),
        st.builds("{} <= {} < {}".format, EXPRESSIONS, EXPRESSIONS, EXPRESSIONS),
        st.builds("{} == {}".format, EXPRESSIONS, EXPRESSIONS),
    ),
    lambda c: st.one_of(
        st.builds("({} and {})".format, c, c), st.builds("({} or {})".format, c, c), st.builds("not {}".format, c)
    ),
    max_leaves=3,
)
SIMPLE = st.one_of(
    st.builds("s = {}".format, EXPRESSIONS),
    st.builds("t -= {}".format, EXPRESSIONS),
    st.builds("out[i] = {}".format, EXPRESSIONS),
    st.builds("out[i] += {}".format, EXPRESSIONS),
    st.builds("out[:2] = {}".format, EXPRESSIONS),
    st.just("s, t = t, s"),
    st.builds("out[i], s = s, {}".format, EXPRESSIONS),
    st.builds("s = {} if {} else {}".format, EXPRESSIONS, CONDITIONS, EXPRESSIONS),
    st.builds("t = added(out, i, {})".format, EXPRESSIONS),
    st.sampled_from(["continue", "break", "return out, s, t"]),
)


def indented(block):
    return [f"    {line}" for line in block]


def blocks(statement):
    return st.lists(statement, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])


STATEMENTS = st.recursive(
    SIMPLE.map(lambda line: [line]),
    lambda s: st.one_of(
        st.builds(lambda c, a: [f"if {c}:", *indented(a)], CONDITIONS, blocks(s)),
        st.builds(lambda c, a, b: [f"if {c}:", *indented(a), "else:", *indented(b)], CONDITIONS, blocks(s), blocks(s)),
        st.builds(lambda a: ["for w in x[:2]:", *indented(["v = v + w", *a])], blocks(s)),
    ),
    max_leaves=6,
)
VALUES = st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5]), min_size=4, max_size=4).map(np.array)

FRAME = """
def added(out, i, value):
    if value > out[i]:
        return out[i]
    out[i] -= 0.5
    return value

def program(x):
    out, s, t = np.zeros(4), 0.0 * x[0], x[1]
    for i in range(4):
        v = x[i]
{}
    else:
        t = t + 1
    return out, s, t
"""


@given(blocks(STATEMENTS), st.lists(VALUES, min_size=2, max_size=4))
def test_random_programs(lines, inputs):
    source = FRAME.format("\n".join(indented(indented(lines))))
    names: dict = {"np": np}
    linecache.cache["random program"] = (len(source), None, source.splitlines(keepends=True), "random program")
    exec(compile(source, "random program", "exec", dont_inherit=True), names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoopt.symbolic.paths.LONGEST", 0)  # both sides of the first branch already
        program = geoopt.compile(names["program"], inputs[0])
    for value in inputs:
        got, want = program(value), names["program"](value)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w, source)
