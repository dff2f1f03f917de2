"""The kernel language as people read it; the texts of targets begin with this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..plan.stores import WRITES
from .expressions import (
    Apply,
    Below,
    Bits,
    Divided,
    Expand,
    Expr,
    Item,
    Lanes,
    Least,
    LeastLane,
    Look,
    Name,
    Number,
    Plus,
    Product,
    Read,
    Remainder,
    Times,
    Turned,
    Whole,
)
from .statements import (
    Add,
    Block,
    Call,
    Fence,
    For,
    Function,
    If,
    Let,
    Prefetch,
    ReadRow,
    Room,
    Shared,
    Statement,
    Total,
    View,
    Write,
    WriteRows,
    WriteTerm,
    WriteTerms,
)

COMPOUND = (Plus, Times, Divided, Remainder)  # expressions that have brackets as parts of others


class Text:
    """Prints expressions that are no vectors as the language writes them; the texts of targets begin with this one."""

    def text(self, e: Expr) -> str:
        match e:
            case Name(name):
                return name
            case Whole(value):
                return str(value)
            case Number(value):
                return self.number(value)
            case Plus(a, Whole(value)) if value < 0:
                return f"{self.text(a)} - {-value}"
            case Plus(a, Times(-1, b)):
                return f"{self.text(a)} - {self._part(b)}"
            case Plus(a, b):
                return f"{self.text(a)} + {self.text(b)}"
            case Times(-1, a):
                return f"-{self._part(a)}"
            case Times(number, a):
                return f"{number} * {self._part(a)}"
            case Divided(a, number):
                return f"{self._part(a)} / {number}"
            case Remainder(a, number):
                return f"{self._part(a)} % {number}"
            case Look(array, at) | Read(array, at, None):
                return f"{array}[{self.text(at)}]"
            case Apply():
                return self.applied(e)
            case Item(block, number):
                return f"{block}[{number}]"
        raise self.refusal("expression", e)

    def number(self, value: float) -> str:
        return f"{value:.17g}"

    def applied(self, e: Apply) -> str:
        return f"{e.op}({', '.join(map(self.text, e.args))})"

    def refusal(self, what: str, of: Expr | Statement) -> Exception:
        """Of an expression, or a statement, that there is no text for."""
        return TypeError(f"{type(of).__name__} is no {what} of the kernel language")

    def _part(self, e: Expr) -> str:
        """As a part of another expression."""
        return f"({self.text(e)})" if isinstance(e, COMPOUND) else self.text(e)


class _Listing(Text):
    def text(self, e: Expr) -> str:
        match e:
            case Lanes(width):
                return f"[0..{width}]"
            case Product(a, b):
                return f"{self._part(a)} * {self._part(b)}"
            case Least(a, b):
                return f"least({self.text(a)}, {self.text(b)})"
            case LeastLane(a):
                return f"least of {self.text(a)}"
            case Below(a, b):
                return f"{self.text(a)} < {self.text(b)}"
            case Bits(number, width):
                return f"bits({self.text(number)}, {width})"
            case Read(array, at, mask) if mask is not None:
                return f"{array}[{self.text(at)}] where {self.text(mask)}"
            case Expand(array, at, mask):
                return f"{array}[{self.text(at)}..] where {self.text(mask)}"
            case Turned(values, number):
                return f"turned({', '.join(map(self.text, values))})[{number}]"
        return super().text(e)

    def lines(self, statements: Iterable[Statement]) -> Iterator[str]:
        for s in statements:
            yield from self.statement(s)

    def statement(self, s: Statement) -> Iterator[str]:
        match s:
            case Let(name, _, value):
                yield f"let {name} = {self.text(value)}"
            case View(name, array, at):
                yield f"view {name} = {array}[{self.text(at)}..]"
            case Room(name, kind, size):
                yield f"room {name} of {size} {kind}"
            case ReadRow(name, array, at, columns):
                yield f"row {name} = {array}[{self.text(at)}..] {sorted(columns)}"
            case Block(name, op, values):
                yield f"block {name} = {op}({', '.join(map(self.text, values))})"
            case Total(name):
                yield f"total {name}"
            case Add(name, value, mask):
                yield f"{name} += {self.text(value)}{self._where(mask)}"
            case For() | If():
                yield from self._nested(s)
            case Shared(totals):
                yield f"shared {', '.join(totals)}"
            case Call(function, arrays, numbers):
                parts = [f"{array}[{self.text(at)}..]" for array, at in arrays]
                yield f"{function}({', '.join([*parts, *map(self.text, numbers)])})"
            case Fence():
                yield "fence"
            case _:
                yield from self._memory(s)

    def _nested(self, s: For | If) -> Iterator[str]:
        if isinstance(s, For):
            index = f"{s.index} ({s.number})" if s.number else s.index
            yield f"for {index} from {self.text(s.begin)} below {self.text(s.end)} by {s.step}:"
            yield from (f"  {line}" for line in self.lines(s.body))
            return
        yield f"if {self.text(s.condition)}:"
        yield from (f"  {line}" for line in self.lines(s.yes))
        if s.no:
            yield "else:"
            yield from (f"  {line}" for line in self.lines(s.no))

    def _memory(self, s: Statement) -> Iterator[str]:
        match s:
            case Write(array, at, value, adds, mask, streams):
                how = f"{self._where(mask)}{' past the caches' if streams else ''}"
                yield f"{array}[{self.text(at)}] {WRITES[adds]} {self.text(value)}{how}"
            case WriteRows(rows):
                yield from (f"{r.array}[{self.text(r.at)}..] = {', '.join(map(self.text, r.values))}" for r in rows)
            case WriteTerm(array, at, bits, number, value, mask):
                row = f"{array}[{self.text(at)}..] by {self.text(bits)}"
                yield f"{row}: term {self.text(number)} = {self.text(value)}{self._where(mask)}"
            case WriteTerms(array, at, bits, tile):
                yield f"{array}[{self.text(at)}..] by {self.text(bits)}: terms = {tile}"
            case Prefetch(array, at):
                yield f"prefetch {array}[{self.text(at)}]"
            case _:
                raise self.refusal("statement", s)

    def _where(self, mask: Expr | None) -> str:
        return "" if mask is None else f" where {self.text(mask)}"


def listing(statements: Iterable[Statement]) -> str:
    """The statements as text."""
    return "\n".join(_Listing().lines(statements))


def function_listing(function: Function) -> str:
    parameters = ", ".join([*function.arrays, *function.numbers])
    return f"function {function.name}({parameters}):\n" + "\n".join(f"  {s}" for s in _Listing().lines(function.body))


def text(e: Expr) -> str:
    return _Listing().text(e)


def listed_kernels(kernels: Iterable[Iterable[Statement]]) -> str:
    """The statements of each kernel of a program."""
    return "\n\n".join(f"kernel {number}, member i:\n{listing(own)}" for number, own in enumerate(kernels))
