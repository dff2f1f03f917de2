"""Family `factors`: factorization of sums of products, and factors that leave loops.

Paper: factorization (appendix). "The largest set of factors contained in as many summands as possible" is found from
the factor that most summands contain: all that these summands share is taken out of them, and so on within and beside.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from fractions import Fraction

from ..ops import OPS
from ..template import Expression
from .chains import Chains
from .facts import Facts, as_float, number
from .fractions import is_factor
from .products import Factor, Product, flatten_product
from .sums import Signed, signed_sum

Token = tuple[object, bool]  # key of a factor or a number, and whether it divides
DIVISION, MULTIPLICATION = OPS["divide"].cost, OPS["multiply"].cost


@dataclass(slots=True)
class _Summand:
    """sign * factors (* the sum ``inner``). whole : what it was, while it is untouched"""

    sign: int
    powers: dict[Token, int]
    inner: _Sum | None = None
    whole: Signed | None = None


@dataclass
class _Sum:
    summands: list[_Summand]
    built: Signed | None = None


@dataclass
class _Chain:
    """All that one chain of additions consists of. factors : what the tokens stand for"""

    facts: Facts
    total: _Sum = field(default_factory=lambda: _Sum([]))
    factors: dict[object, Factor] = field(default_factory=dict)
    old: list[Expression] = field(default_factory=list)
    stops: set[int] = field(default_factory=set)


def factorize(roots: list[Expression], facts: Facts) -> list[Expression]:
    """x * y * z + x * w * y + v * x * y + u * x -> x * (y * (z + w + v) + u)"""
    chains = Chains(roots, facts)
    return chains.rewritten(_is_link, lambda top: _factorized(top, chains))


def _is_link(e: Expression) -> bool:
    return e.op in ("add", "subtract", "negative")


def _factorized(top: Expression, chains: Chains) -> Expression | None:
    chain = _flattened(top, chains)
    sums = [chain.total]
    for s in sums:  # grows while it runs
        sums += _take_out(s)
    if len(sums) == 1:
        return None
    for s in reversed(sums):
        s.built = _built(s, chain)
        if s.built is None:
            return None
    sign, e = chain.total.built  # type: ignore[misc]
    return chains.if_cheaper(e if sign > 0 else chains.facts.make("negative", e), chain.old, chain.stops)


# -- the summands of a chain ----------------------------------------------------------------------------------------


def _flattened(top: Expression, chains: Chains) -> _Chain:
    chain = _Chain(chains.facts)
    stack = [(1, top)]
    while stack:
        sign, e = stack.pop()
        if e is top or (_is_link(e) and chains.is_open(e)):
            chain.old.append(e)
            if e.op != "negative":
                stack.append((-sign if e.op == "subtract" else sign, e.args[1]))
            stack.append((-sign if e.op == "negative" else sign, e.args[0]))
        else:
            _add_summand(sign, e, chains, chain)
    return chain


def _add_summand(sign: int, e: Expression, chains: Chains, chain: _Chain) -> None:
    now = chains.now(e)
    if is_factor(e) and chains.is_open(e):
        product = flatten_product(e, chains)
    else:
        product = Product(chains.facts, stops={id(now)})
        product.add(now, 1)
    powers: dict[Token, int] = {}
    for key, f in product.factors.items():
        known = chain.factors.setdefault(key, f)
        if known.sign != f.sign and (f.above + f.below) % 2:
            product.sign = -product.sign
        known.reciprocal = known.reciprocal or f.reciprocal
        powers |= {(key, is_below): k for is_below, k in ((False, f.above), (True, f.below)) if k}
    for value, is_below in ((product.over, False), (product.under, True)):
        if abs(value) != 1:
            powers[abs(value), is_below] = 1
    inside = product.sign * (1 if (product.over > 0) == (product.under > 0) else -1)
    chain.total.summands.append(_Summand(sign * inside, powers, whole=(sign, now)))
    chain.old += product.old
    chain.stops |= product.stops


# -- what they share ------------------------------------------------------------------------------------------------


class _Sharing:
    """Which summands of one sum contain which factors; the most frequent factor is found first."""

    def __init__(self, summands: list[_Summand]):
        self.summands: dict[int, _Summand] = {}
        self.containing: dict[Token, dict[int, None]] = {}
        self.heap: list[tuple[int, int, Token]] = []
        self.order: dict[Token, int] = {}
        for i, s in enumerate(summands):
            self.insert(i, s)

    def insert(self, i: int, s: _Summand) -> None:
        self.summands[i] = s
        for token in s.powers:
            self.containing.setdefault(token, {})[i] = None
            count = len(self.containing[token])
            if count > 1:
                heapq.heappush(self.heap, (-count, self.order.setdefault(token, len(self.order)), token))

    def remove(self, i: int) -> _Summand:
        s = self.summands.pop(i)
        for token in s.powers:
            del self.containing[token][i]
        return s

    def most_frequent(self) -> tuple[Token, list[int]] | None:
        while self.heap:
            count, order, token = heapq.heappop(self.heap)
            inside = self.containing[token]
            if len(inside) == -count:
                return token, sorted(inside)
            if 1 < len(inside) < -count:
                heapq.heappush(self.heap, (-len(inside), order, token))
        return None


def _take_out(s: _Sum) -> list[_Sum]:
    """Replace summands that share factors by one product with their sum; gives those sums."""
    sharing = _Sharing(s.summands)
    found: list[_Sum] = []
    while (shared := sharing.most_frequent()) is not None:
        members = [sharing.summands[i] for i in shared[1]]
        common = _common(members)
        if _saved(members, common) <= 0:
            continue
        rests = [_Summand(m.sign, _without(m.powers, common), m.inner) for m in members]
        inner = _Sum(rests)
        found.append(inner)
        for i in shared[1]:
            sharing.remove(i)
        sharing.insert(shared[1][0], _Summand(1, common, inner))
    s.summands = [sharing.summands[i] for i in sorted(sharing.summands)]
    return found


def _common(members: list[_Summand]) -> dict[Token, int]:
    first, *others = sorted((m.powers for m in members), key=len)
    return {t: k for t, n in first.items() if (k := min([n, *(o.get(t, 0) for o in others)]))}


def _without(powers: dict[Token, int], common: dict[Token, int]) -> dict[Token, int]:
    return {t: n - common.get(t, 0) for t, n in powers.items() if n > common.get(t, 0)}


def _saved(members: list[_Summand], common: dict[Token, int]) -> int:
    before = sum(_cost(m.powers, m.inner is not None) for m in members)
    rests = sum(_cost(_without(m.powers, common), m.inner is not None) for m in members)
    return before - rests - _cost(common, True)


def _cost(powers: dict[Token, int], has_inner: bool) -> int:
    above = has_inner + sum(k for (_, is_below), k in powers.items() if not is_below)
    below = sum(k for (_, is_below), k in powers.items() if is_below)
    division = DIVISION + (below - 1) * MULTIPLICATION if below else 0
    return max(above - 1, 0) * MULTIPLICATION + division


# -- building what was found ------------------------------------------------------------------------------------------


def _built(s: _Sum, chain: _Chain) -> Signed | None:
    items: list[Signed] = []
    total = Fraction(0)
    for summand in s.summands:
        item = _built_summand(summand, chain)
        if item is None:
            return None
        k = number(item[1])
        if k is None:
            items.append(item)
        elif total * item[0] * k < 0 and not chain.facts.is_finite:
            return None  # of an infinite x, 4 x - 2 x is not 2 x
        else:
            total += item[0] * k
    if total or not items:
        k = as_float(abs(total))
        if k is None:
            return None
        items.append((1 if total >= 0 else -1, chain.facts.constant(k)))
    return signed_sum(items, chain.facts)


def _built_summand(summand: _Summand, chain: _Chain) -> Signed | None:
    if summand.whole is not None:
        return summand.whole
    product = Product(chain.facts)
    for (key, is_below), k in summand.powers.items():
        if isinstance(key, Fraction):
            product.over, product.under = (product.over, key) if is_below else (key, product.under)
        else:
            f = chain.factors[key]
            known = product.factors.setdefault(key, f.copy(0, 0))  # type: ignore[arg-type]
            known.above, known.below = (known.above, k) if is_below else (k, known.below)
    sign = summand.sign
    if summand.inner is not None:
        inner_sign, e = summand.inner.built  # type: ignore[misc]
        sign *= inner_sign
        product.add(e, 1)
    built = product.build()
    return None if built is None else (sign, built)
