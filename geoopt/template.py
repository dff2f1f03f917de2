"""The template of a kernel: one small expression graph that stands for every member of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .block_ops import BLOCK_OPS
from .ops import OPS

TERMS = 4  # what a loop counts as, whose number of terms the template does not know: few, but worth to leave


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """A node of a template; interned by its `Template`, so equal expressions are the same object.

    op : a row of `ops.OPS`, or ``leaf`` (``value`` is the leaf's number), ``constant`` (``value`` is a
        float), ``sum`` (``value`` is the loop; the argument is evaluated once per term), a name in
        `block_ops.BLOCK_OPS` (the arguments are the lanes of an element) or ``lane`` (number ``value`` of a block).
    """

    op: str
    args: tuple[Expression, ...] = ()
    value: float | int | None = None

    def __repr__(self) -> str:
        """Short: written out, shared expressions can be exponentially long. See `listing`."""
        if self.op in ("leaf", "constant"):
            return text(self)
        return f"{self.op}({', '.join(f'{a.op}(…)' if a.args else text(a) for a in self.args)})"


class Template:
    """Makes interned expressions."""

    def __init__(self) -> None:
        self._known: dict[tuple, Expression] = {}

    def make(self, op: str, args: tuple[Expression, ...] = (), value: float | int | None = None) -> Expression:
        key = (op, tuple(id(a) for a in args), repr(value))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Expression(op, args, value)
        return found


def bottom_up(roots: list[Expression], is_done: Callable[[Expression], bool] | None = None) -> Iterator[Expression]:
    """Every expression below some roots once, arguments first; without those that are done, and what is below."""
    opened: set[int] = set()
    stack: list[Expression | None] = list(reversed(roots))
    while stack:
        e = stack.pop()
        if e is None:  # before what all arguments are there for
            yield stack.pop()  # type: ignore[misc]
        elif id(e) not in opened and (is_done is None or not is_done(e)):
            opened.add(id(e))
            if e.args:
                stack += (e, None, *e.args[::-1])
            else:
                yield e


def rewritten(
    roots: list[Expression], template: Template, rule: Callable[[Expression], Expression | None]
) -> list[Expression]:
    """Apply a rule to every expression, arguments first; the rule sees rewritten arguments."""
    return replaced(roots, template, {}, rule)


def replaced(
    roots: list[Expression],
    template: Template,
    new: Mapping[int, Expression],
    rule: Callable[[Expression], Expression | None] = lambda e: None,
) -> list[Expression]:
    """The same with others in the places of some expressions, by identity, which are not rewritten."""
    done = dict(new)
    for e in bottom_up(roots, lambda e: id(e) in new):
        args = tuple(done[id(a)] for a in e.args)
        e2 = e if all(a is b for a, b in zip(args, e.args, strict=True)) else template.make(e.op, args, e.value)
        done[id(e)] = rule(e2) or e2
    return [done[id(r)] for r in roots]


Written = tuple[tuple[tuple, ...], tuple[int, ...]]  # expressions, arguments first, and which of them are the roots


def written(roots: Iterable[Expression]) -> Written:
    """Some roots as plain tuples, which are equal for templates that are alike."""
    order = list(bottom_up(list(roots)))
    places = {id(e): place for place, e in enumerate(order)}
    lines = ((e.op, tuple(places[id(a)] for a in e.args), e.value, repr(e.value)) for e in order)  # 0.0 is not -0.0
    return tuple(lines), tuple(places[id(r)] for r in roots)


def read(template: Template, found: Written) -> list[Expression]:
    """The roots that were written, in another template."""
    lines, roots = found
    made: list[Expression] = []
    for op, args, value, _ in lines:
        made.append(template.make(op, tuple(made[a] for a in args), value))
    return [made[r] for r in roots]


def is_exact_difference(e: Expression) -> bool:
    """Whether an expression is the difference of two products, such as x y - z w of a determinant: fused into one, the
    rounding of the other would stay where the two are equal, and be divided by where NumPy divides by 0."""
    return e.op == "subtract" and all(a.op == "multiply" for a in e.args)


def operations(roots: list[Expression]) -> int:
    """How many arithmetic operations one member takes, terms of loops counted once."""
    return sum(e.op in OPS or e.op == "sum" for e in bottom_up(roots))


def cost(roots: list[Expression], loops: Mapping[int, int] | None = None) -> int:
    """Complexity of a template with every shared expression counted once.

    loops : the loop of each leaf that varies in one; operations that vary in a loop count once per term
    """
    if not loops:
        return sum(OPS[e.op].cost for e in bottom_up(roots) if e.op in OPS)
    total, varying = 0, set()
    for e in bottom_up(roots):
        varies = e.value in loops if e.op == "leaf" else e.op != "sum" and any(id(a) in varying for a in e.args)
        varying.update([id(e)] * varies)
        total += OPS[e.op].cost * (TERMS if varies else 1) if e.op in OPS else 0
    return total


def text(e: Expression, names: Callable[[int], str] = lambda i: f"x{i}") -> str:
    """The expression as one line of Python-like text."""
    if e.op == "leaf":
        return names(int(e.value))  # type: ignore[arg-type]
    if e.op == "constant":
        return f"{e.value:.17g}"
    return _text(e, [text(a, names) for a in e.args])


def _text(e: Expression, args: list[str]) -> str:
    """What an expression does with arguments that have names."""
    if e.op in OPS:
        return OPS[e.op].text.format(*args)
    name = {"sum": "sum{0}({1})", "lane": "{1}[{0}]"}.get(e.op, "{2}({1})")
    return name.format(e.value, ", ".join(args), e.op)


def listing(roots: list[Expression], leaf_name: Callable[[int], str] = lambda i: f"x{i}") -> str:
    """The template as assignments, shared expressions as locals."""
    uses: dict[int, int] = {}
    order = list(bottom_up(roots))
    for e in order:
        for a in e.args:
            uses[id(a)] = uses.get(id(a), 0) + 1
    names: dict[int, str] = {}
    lines = []
    for e in order:
        line = _text(e, [names[id(a)] for a in e.args]) if e.args else text(e, leaf_name)
        if uses.get(id(e), 0) > 1 and e.args and e.op not in ("sum", "lane"):
            names[id(e)] = f"r{len(lines)}"
            lines.append(f"{names[id(e)]} = {line}")
        else:
            names[id(e)] = line
    lines += [f"y{i} = {names[id(r)]}" for i, r in enumerate(roots)]
    return "\n".join(lines)


def evaluate_template(
    roots: Sequence[Expression], leaves: Callable, sums: Callable, loops: Sequence[int | None] = ()
) -> list[np.ndarray]:
    """Values of the roots.

    leaves(number, loop) -> array;  sums(loop, values per term) -> values per member;  loops : per root the loop of
    which the values per term are wanted, where any root has one
    An expression inside a loop sees its leaves per term; ``leaves`` is called with the loop it is read in.
    """
    done: dict[tuple[int, int | None], np.ndarray] = {}

    def visit(e: Expression, loop: int | None) -> np.ndarray:
        key = (id(e), loop)
        if key not in done:
            if e.op == "leaf":
                done[key] = leaves(e.value, loop)
            elif e.op == "constant":
                done[key] = np.asarray(e.value, float)
            elif e.op == "sum":
                done[key] = sums(e.value, visit(e.args[0], int(e.value)))  # type: ignore[arg-type]
            elif e.op == "lane":
                done[key] = visit(e.args[0], loop)[:, int(e.value)]  # type: ignore[arg-type]
            elif e.op in BLOCK_OPS:
                done[key] = BLOCK_OPS[e.op](np.stack(np.broadcast_arrays(*(visit(a, loop) for a in e.args)), axis=-1))
            else:
                done[key] = OPS[e.op].numpy(*(visit(a, loop) for a in e.args))
        return done[key]

    return [visit(r, loop) for r, loop in zip(roots, loops or [None] * len(roots), strict=True)]
