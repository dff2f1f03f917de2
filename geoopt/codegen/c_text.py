"""The kernel language as text of C, or of a language that begins like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..errors import InternalError
from ..ops import OPS
from ..plan.stores import WRITES
from .code_text import Text
from .expressions import Apply, Expr
from .numbers import literal
from .statements import CONDITION, INDEX, NUMBER, Add, Block, For, Let, Shared, Statement, Total, Write


class CText(Text):
    """Prints statements of numbers of one type.

    scalar, index : the types of numbers and of entries
    routines : called with the name of an operation on blocks, and how many numbers these have
    """

    name = "c"

    def __init__(self, dtype: np.dtype, scalar: str, index: str):
        self.dtype, self.scalar, self.index = dtype, scalar, index
        self.kinds = {INDEX: index, NUMBER: scalar, CONDITION: "bool"}
        self.routines: dict[tuple[str, int], None] = {}

    def lines(self, statements: Iterable[Statement], indent: str = "") -> Iterator[str]:
        for s in statements:
            yield from (indent + line for line in self.statement(s))

    def statement(self, s: Statement) -> Iterator[str]:
        match s:
            case Let(name, kind, value) if kind in self.kinds:
                found = self.operation(value) if isinstance(value, Apply) else self.text(value)
                yield f"const {self.kinds[kind]} {name} = {found};"
            case Block(name, op, values):
                self.routines[op, len(values)] = None
                yield f"{self.scalar} {name}[{s.room}] = {{{', '.join(map(self.text, values))}}};"
                yield f"{op}{len(values)}({name});"
            case Total(name, kind):
                yield f"{self.kinds[kind]} {name} = 0;"
            case Add(name, value, None):
                yield f"{name} += {self.text(value)};"
            case For(index, begin, end, step, body, ""):
                head = f"{self.index} {index} = {self.text(begin)}; {index} < {self.text(end)}; {index} += {step}"
                yield f"for ({head}) {{"
                yield from self.lines(body, "  ")
                yield "}"
            case Write(array, at, value, adds, None, False):
                yield f"{array}[{self.text(at)}] {WRITES[adds]} {self.text(value)};"
            case Shared(totals):
                yield from self.shared(totals)
            case _:
                raise self.refusal("statement", s)

    def shared(self, totals: tuple[str, ...]) -> Iterator[str]:
        """What makes totals of several threads their sum."""
        raise InternalError(self.name, "no threads share a member")

    def number(self, value: float) -> str:
        return literal(value, self.dtype)

    def applied(self, e: Apply) -> str:
        return f"({self.operation(e)})"

    def refusal(self, what: str, of: Expr | Statement) -> Exception:
        return InternalError(self.name, f"there is no text for the {what} {type(of).__name__}")

    def operation(self, e: Apply) -> str:
        """Without brackets around it."""
        c = self.exact_difference() if e.is_exact else OPS[e.op].c
        return (c[1:-1] if c.startswith("(") else c).format(*map(self.text, e.args))

    def exact_difference(self) -> str:
        """The difference of two products, neither of which is fused with it."""
        return OPS["subtract"].c
