"""The kernel language: what a kernel does for one member, statement by statement, between a plan and a target's text.

::

    let p4 = b4[i]                    Let("p4", INDEX, Look("b4", Name("i")))
    let x0 = b0[p4 + 1]               Let("x0", NUMBER, Read("b0", Plus(Name("p4"), Whole(1))))
    total s0                          Total("s0")
    for t0 from b5[i] below 9 by 16:  For("t0", begin, end, 16, body)
      s0 += b0[t0]                    Add("s0", Read("b0", Name("t0")))
    b1[i] = x0 * s0                   Write("b1", Name("i"), Apply("multiply", ...))

`lower` makes it, `interpreter` runs it, a printer has one function for each kind of expression and statement and raises
on a kind that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..plan.stores import WRITES

INDEX, NUMBER, CONDITION = "index", "number", "condition"  # kinds of locals


class Expr:
    """What is computed: a whole number, a number of the program's type, or a condition."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A local."""

    name: str


@dataclass(frozen=True, slots=True)
class Whole(Expr):
    value: int


@dataclass(frozen=True, slots=True)
class Plus(Expr):
    """The sum of whole numbers."""

    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Times(Expr):
    """A multiple of a whole number."""

    number: int
    a: Expr


@dataclass(frozen=True, slots=True)
class Divided(Expr):
    """The quotient of whole numbers that are not negative, rounded down."""

    a: Expr
    number: int


@dataclass(frozen=True, slots=True)
class Remainder(Expr):
    a: Expr
    number: int


@dataclass(frozen=True, slots=True)
class Look(Expr):
    """An entry of an array of whole numbers."""

    array: str
    at: Expr


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A constant of the program's type."""

    value: float


@dataclass(frozen=True, slots=True)
class Read(Expr):
    """An entry of an array of numbers."""

    array: str
    at: Expr


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """An operation of `ops.OPS`. is_exact : a difference of products, neither of which is fused with it"""

    op: str
    args: tuple[Expr, ...]
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Lane(Expr):
    """One number of a block."""

    block: str
    number: int


class Statement:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Let(Statement):
    """Names what does not change."""

    name: str
    kind: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """Names an array of numbers, on which an operation of `block_ops.BLOCK_OPS` works in place."""

    name: str
    op: str
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Total(Statement):
    """Names a number that is added to, 0 at first."""

    name: str


@dataclass(frozen=True, slots=True)
class Add(Statement):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class For(Statement):
    """``index`` is begin, begin + step, ... below the end."""

    index: str
    begin: Expr
    end: Expr
    step: int
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Write(Statement):
    """To an entry of an array of numbers. adds : as of a `stores.Store`"""

    array: str
    at: Expr
    value: Expr
    adds: int = 0


@dataclass(frozen=True, slots=True)
class Shared(Statement):
    """Totals of several threads become their sum; what follows is done by one of these threads."""

    totals: tuple[str, ...]


COMPOUND = (Plus, Times, Divided, Remainder)  # expressions that have brackets as parts of others


def plus(a: Expr, b: Expr) -> Expr:
    """The sum, without zeros."""
    return b if a == Whole(0) else a if b == Whole(0) else Plus(a, b)


def times(number: int, a: Expr) -> Expr:
    """The multiple, without a factor of 1."""
    return a if number == 1 else Times(number, a)


class Text:
    """Prints expressions as the language writes them; the texts of targets begin with this one."""

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
            case Look(array, at) | Read(array, at):
                return f"{array}[{self.text(at)}]"
            case Apply():
                return self.applied(e)
            case Lane(block, number):
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
    def lines(self, statements: Iterable[Statement]) -> Iterator[str]:
        for s in statements:
            match s:
                case Let(name, _, value):
                    yield f"let {name} = {self.text(value)}"
                case Block(name, op, values):
                    yield f"block {name} = {op}({', '.join(map(self.text, values))})"
                case Total(name):
                    yield f"total {name}"
                case Add(name, value):
                    yield f"{name} += {self.text(value)}"
                case For(index, begin, end, step, body):
                    yield f"for {index} from {self.text(begin)} below {self.text(end)} by {step}:"
                    yield from (f"  {line}" for line in self.lines(body))
                case Write(array, at, value, adds):
                    yield f"{array}[{self.text(at)}] {WRITES[adds]} {self.text(value)}"
                case Shared(totals):
                    yield f"shared {', '.join(totals)}"
                case _:
                    raise self.refusal("statement", s)


def listing(statements: Iterable[Statement]) -> str:
    """The statements as text, as above."""
    return "\n".join(_Listing().lines(statements))


def text(e: Expr) -> str:
    return Text().text(e)


def listed_kernels(kernels: Iterable[Iterable[Statement]]) -> str:
    """The statements of each kernel of a program."""
    return "\n\n".join(f"kernel {number}, member i:\n{listing(own)}" for number, own in enumerate(kernels))
