"""Rewriting keeps the meaning of a template and never raises its cost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geoopt.ops import OPS
from geoopt.simplify.constants import fold
from geoopt.simplify.fractions import share_divisors
from geoopt.simplify.values import merge_equal_values
from geoopt.template import Template, bottom_up, cost, evaluate_template, operations, rewritten

SAFE = ("add", "subtract", "multiply", "negative", "divide", "absolute", "minimum", "maximum")


@st.composite
def templates(draw):
    t = Template()
    pool = [t.make("leaf", (), i) for i in range(4)] + [t.make("constant", (), c) for c in (1.0, 2.0, -0.5)]
    for _ in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(SAFE))
        args = tuple(draw(st.sampled_from(pool)) for _ in range(OPS[op].arity))
        pool.append(t.make(op, args))
    return t, pool[-3:]


def values(roots):
    at = np.random.default_rng(5).uniform(0.5, 2.0, (4, 20))
    with np.errstate(all="ignore"):
        return evaluate_template(roots, lambda i, _: at[i], lambda _, v: v)


FAMILIES = {
    "constants": lambda roots, t: rewritten(roots, t, lambda e: fold(t, e)),
    "values": lambda roots, t: merge_equal_values(roots, t, True),
    "fractions": share_divisors,
}


@given(templates(), st.sampled_from(sorted(FAMILIES)))
def test_families_keep_the_meaning_and_the_cost(template, family):
    t, roots = template
    after = FAMILIES[family](roots, t)
    assert cost(after) <= cost(roots)
    for got, want in zip(values(after), values(roots), strict=True):
        want = np.broadcast_to(want, (20,))
        good = np.isfinite(want) & (np.abs(want) < 1e6)
        np.testing.assert_allclose(np.broadcast_to(got, (20,))[good], want[good], rtol=1e-7, atol=1e-7)


def test_equal_subexpressions_are_evaluated_once():
    t = Template()
    x, y = (t.make("leaf", (), i) for i in range(2))
    one = t.make("multiply", (t.make("add", (x, y)), x))
    other = t.make("multiply", (x, t.make("add", (y, x))))
    after = merge_equal_values([one, other], t, True)
    assert after[0] is after[1] and operations(after) == 2


def test_neutral_elements_vanish():
    t = Template()
    x, zero, one = t.make("leaf", (), 0), t.make("constant", (), 0.0), t.make("constant", (), 1.0)
    for e in (t.make("add", (x, zero)), t.make("multiply", (one, x)), t.make("divide", (x, one))):
        assert merge_equal_values([e], t, True) == [x]


def test_a_shared_divisor_is_inverted_once():
    t = Template()
    x, y, d = (t.make("leaf", (), i) for i in range(3))
    after = share_divisors([t.make("divide", (x, d)), t.make("divide", (y, d))], t)
    assert [e.op for e in bottom_up(after)].count("divide") == 1
    single = [t.make("divide", (x, y))]
    assert share_divisors(single, t) == single
