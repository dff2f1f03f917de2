"""Family `fractions`: quotients."""

from __future__ import annotations

from ..template import Expression, Template, bottom_up, rewritten


def share_divisors(roots: list[Expression], template: Template) -> list[Expression]:
    """a / d, b / d -> a * r, b * r with r = 1 / d: one division where a divisor serves several quotients."""
    uses: dict[int, int] = {}
    for e in bottom_up(roots):
        if e.op == "divide":
            uses[id(e.args[1])] = uses.get(id(e.args[1]), 0) + 1
    shared = {id(e.args[1]) for e in bottom_up(roots) if e.op == "divide" and uses[id(e.args[1])] > 1}
    one = template.make("constant", (), 1.0)

    def visit(e: Expression) -> Expression:
        if id(e) not in done:
            args = tuple(visit(a) for a in e.args)
            if e.op == "divide" and id(e.args[1]) in shared:
                reciprocal = template.make("divide", (one, args[1]))
                done[id(e)] = reciprocal if args[0] is one else template.make("multiply", (args[0], reciprocal))
            else:
                done[id(e)] = template.make(e.op, args, e.value)
        return done[id(e)]

    done: dict[int, Expression] = {}
    return [visit(r) for r in rewritten(roots, template, lambda _: None)] if shared else roots
