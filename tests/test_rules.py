"""Every row of the table of rules holds, saves something, and goes with its family."""

from __future__ import annotations

import numpy as np
import pytest

from geoopt.ops import OPS
from geoopt.options import FAMILIES, Options
from geoopt.simplify import rewrite
from geoopt.simplify.facts import Facts
from geoopt.simplify.patterns import Pattern, build, match, variables
from geoopt.simplify.rules import RULES
from geoopt.template import Template, bottom_up, cost, evaluate_template, listing


def several(pattern):
    return pattern if isinstance(pattern, tuple) else (pattern,)


def nodes(pattern):
    for p in several(pattern):
        yield p
        yield from nodes(p.args)


class Example:
    """Both sides of a rule as templates: variables are leaves, conditions compare one with a number."""

    def __init__(self, rule):
        self.rule = rule
        self.names = sorted({p.value for p in nodes(rule.before) if p.op == "variable"})
        t = Template()
        leaves = {name: t.make("leaf", (), i) for i, name in enumerate(self.names)}
        self.loops = {i: 0 for i, name in enumerate(self.names) if name.endswith("_t")}
        self.facts = Facts(t, leaves.values(), (), rule.assume, self.loops)
        if "c" in leaves:
            leaves["c"] = self.facts.make("less", leaves["c"], self.facts.constant(0.5))
        if {"x >= 0", "x not -0"} & set(rule.assume):
            leaves["x"] = self.facts.make("exp", leaves["x"])
        self.before = [build(p, leaves, self.facts) for p in several(rule.before)]
        self.after = [build(p, leaves, self.facts) for p in several(rule.after)]

    def in_place(self, roots):
        """Where the rule may be applied: compared with something, if the sign of a zero is not to be seen."""
        if "unsigned" not in self.rule.assume:
            return roots
        other = self.facts.make("leaf", value=len(self.names))
        three = self.facts.constant(3)
        return [self.facts.make("where", self.facts.make("less", r, other), other, three) for r in roots]

    def simplified(self, without=()):
        roots = self.in_place(self.before)
        facts = Facts(self.facts.template, roots, without, self.rule.assume, self.loops)
        return rewrite(roots, facts, Options(without=frozenset(without)))

    def points(self, largest, count):
        """Random ones (names, 3 terms, count) of either sign, except under a root, and of sizes up to some."""
        rng = np.random.default_rng(5)
        at = rng.uniform(0.5, 2.0, (len(self.names), 3, count)) * largest ** rng.uniform(-1, 1, (len(self.names), 1, 1))
        if not any(p.op == "sqrt" and p.args[0].op == "variable" for p in nodes(self.rule.before)):
            at *= rng.choice([-1, 1], at.shape)
        return at

    def values(self, roots, at=None):
        at = self.points(1.0, 7) if at is None else at
        leaves = {i: at[i] if i in self.loops else at[i][0] for i in range(len(at))}
        return evaluate_template(roots, lambda i, _: leaves[i], lambda _, v: np.sum(v, axis=0))


each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name.replace(" ", "-"))
each_local_rule = pytest.mark.parametrize("rule", [r for r in RULES if r.is_local], ids=lambda r: r.name)


@each_rule
def test_both_sides_have_one_value(rule):
    example = Example(rule)
    for got, want in zip(example.values(example.after), example.values(example.before), strict=True):
        np.testing.assert_allclose(*np.broadcast_arrays(got, want), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rule", [r for r in RULES if "exact" not in r.assume], ids=lambda r: r.name.replace(" ", "-"))
@pytest.mark.parametrize("apart", [None, 1e-12])
def test_a_rule_adds_little_to_rounding_errors(rule, apart):
    """On numbers of mixed sizes, two of which may be nearly equal, beside the same in long doubles."""
    example = Example(rule)
    at = example.points(1e8, 1000)
    if apart and len(at) > 1:
        at[1] = at[0] * (1 + apart * np.random.default_rng(7).normal(size=at[0].shape))
    exact = example.values(example.before, at.astype(np.longdouble))

    def errors(roots):
        """Beside the exact values: the median, and the one that a tenth exceed."""
        found = zip(example.values(roots, at), exact, strict=True)
        each = [np.abs(got - want) / np.where(want == 0, 1, np.abs(want)) for got, want in found]
        return np.array([np.quantile(e.astype(float), [0.5, 0.9]) for e in each])

    for after in [example.after] if "unsigned" in rule.assume else [example.after, example.simplified()]:
        assert (errors(after) <= 8 * errors(example.before) + 4 * np.finfo(float).eps).all()


@each_rule
def test_a_rule_saves_something(rule):
    example = Example(rule)
    sides = (example.before, example.after)
    before, after = ((cost(roots, example.loops), len(list(bottom_up(roots)))) for roots in sides)
    assert after < before


@each_rule
def test_a_rule_is_applied(rule):
    example = Example(rule)
    alone, together = example.simplified([f for f in FAMILIES if f != rule.family]), example.simplified()
    after = example.in_place(example.after)
    assert listing(after) in (listing(alone), listing(together))
    assert cost(together, example.loops) <= cost(after, example.loops)


@each_rule
def test_without_families_and_merging_nothing_happens(rule):
    example = Example(rule)
    assert example.simplified({*FAMILIES, "local"}) == example.in_place(example.before)


@each_rule
def test_what_drops_a_leaf_assumes_that_values_are_finite(rule):
    example = Example(rule)
    read = [{e.value for e in bottom_up(roots) if e.op == "leaf"} for roots in (example.before, example.after)]
    if read[0] != read[1] and "choice" not in rule.name:
        assert "finite" in rule.assume


@each_local_rule
def test_a_local_rule_costs_no_more_than_the_operation_it_replaces(rule):
    """So it cannot raise the cost, however much is shared."""
    example = Example(rule)
    (before,), (after,) = example.before, example.after
    below = {id(e) for e in bottom_up(list(before.args))}
    assert example.facts.cost_above(after, below)[1] <= OPS[before.op].cost


def test_the_operands_of_commutative_operations_match_in_either_order():
    x, y = variables("x y")
    facts = Facts(Template())
    e = build(x * (y + 1), {"x": facts.make("leaf", value=0), "y": facts.make("leaf", value=1)}, facts)
    assert match((1 + y) * x, e) is not None and match((1 - y) * x, e) is None and match(x * x, e) is None
    assert match(Pattern("leaf"), e) is None


def test_names_are_unique():
    assert len({r.name for r in RULES}) == len(RULES)
    assert {r.family for r in RULES} == set(FAMILIES)
