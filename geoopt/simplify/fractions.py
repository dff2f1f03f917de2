"""Family `fractions`: quotients."""

from __future__ import annotations

from collections import Counter

from ..template import Expression, Template, bottom_up


def share_divisors(roots: list[Expression], template: Template) -> list[Expression]:
    """a / d, b / d -> a * r, b * r with r = 1 / d: one division where a divisor serves several quotients."""
    order = list(bottom_up(roots))
    quotients = Counter(id(e.args[1]) for e in order if e.op == "divide")
    one = template.make("constant", (), 1.0)
    done: dict[int, Expression] = {}
    for e in order:
        args = tuple(done[id(a)] for a in e.args)
        if e.op == "divide" and quotients[id(e.args[1])] > 1:
            reciprocal = template.make("divide", (one, args[1]))
            done[id(e)] = reciprocal if args[0] is one else template.make("multiply", (args[0], reciprocal))
        else:
            done[id(e)] = template.make(e.op, args, e.value)
    return [done[id(r)] for r in roots]
