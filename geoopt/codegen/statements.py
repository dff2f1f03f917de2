"""The kernel language: what a kernel does, statement by statement, between a plan and a target's text.

::

    let p4 = b4[i]                    Let("p4", INDEX, Look("b4", Name("i")))
    let x0 = b0[p4 + 1]               Let("x0", NUMBER, Read("b0", Plus(Name("p4"), Whole(1))))
    total s0                          Total("s0")
    for t0 from b5[i] below 9 by 16:  For("t0", begin, end, 16, body)
      s0 += b0[t0]                    Add("s0", Read("b0", Name("t0")))
    b1[i] = x0 * s0                   Write("b1", Name("i"), Apply("multiply", ...))

Expressions, and what is a vector: see `expressions`. `lower` makes statements for one member or for a vector of
members; passes (`codegen.simd`) give statements for statements; `interpreter` runs them; a printer has one function for
each kind of expression and statement and raises on a kind that it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..block_ops import lanes_of
from .expressions import Expr

INDEX, COUNT, NUMBER, CONDITION = "index", "count", "number", "condition"  # kinds of locals: see `Let`


class Statement:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Let(Statement):
    """Names what does not change. kind : INDEX for entries, COUNT for whole numbers of 32 bits that are compared only,
    NUMBER, CONDITION"""

    name: str
    kind: str
    value: Expr


@dataclass(frozen=True, slots=True)
class View(Statement):
    """Names the part of an array from an entry on."""

    name: str
    array: str
    at: Expr


@dataclass(frozen=True, slots=True)
class Room(Statement):
    """Names a new array of entries (INDEX) or numbers (NUMBER), which hold anything."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True, slots=True)
class ReadRow(Statement):
    """Names a block of neighbours: ``array[at]``, ``array[at + 1]``, ... columns : the numbers of those that are used;
    is_padded : whether the others may be read, too"""

    name: str
    array: str
    at: Expr
    columns: frozenset[int]
    is_padded: bool


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """Names an array of numbers, on which an operation of `block_ops.BLOCK_OPS` works in place; it has room for those
    that are given and those that are found."""

    name: str
    op: str
    values: tuple[Expr, ...]

    @property
    def room(self) -> int:
        return max(len(self.values), lanes_of(self.op, len(self.values)))


@dataclass(frozen=True, slots=True)
class Total(Statement):
    """Names a number, or an entry, that is added to, 0 at first."""

    name: str
    kind: str = NUMBER


@dataclass(frozen=True, slots=True)
class Add(Statement):
    """mask : where it does not hold, the total stays as it is"""

    name: str
    value: Expr
    mask: Expr | None = None


@dataclass(frozen=True, slots=True)
class For(Statement):
    """``index`` is begin, begin + step, ... below the end. number : a local that is 0, 1, ..., if one is named
    is_entered : whether the end is known to lie after the beginning"""

    index: str
    begin: Expr
    end: Expr
    step: int
    body: tuple[Statement, ...]
    number: str = ""
    is_entered: bool = False


@dataclass(frozen=True, slots=True)
class If(Statement):
    condition: Expr
    yes: tuple[Statement, ...]
    no: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Write(Statement):
    """To an entry of an array. adds : as of a `stores.Store`;  mask : where it does not hold, nothing is written
    streams : whether it goes past the caches, until the next `Fence`"""

    array: str
    at: Expr
    value: Expr
    adds: int = 0
    mask: Expr | None = None
    streams: bool = False


class Row(NamedTuple):
    """Values for neighbours."""

    array: str
    at: Expr
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class WriteRows(Statement):
    """Several rows for each lane."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class WriteTerm(Statement):
    """Term ``number`` of a `stores.RowStore` that begins at an entry."""

    array: str
    at: Expr
    bits: Expr
    number: Expr
    value: Expr
    mask: Expr | None = None


@dataclass(frozen=True, slots=True)
class WriteTerms(Statement):
    """All terms of a `stores.RowStore` that begins at an entry. tile : the array with a vector for each term"""

    array: str
    at: Expr
    bits: Expr
    tile: str


@dataclass(frozen=True, slots=True)
class Prefetch(Statement):
    """Fetches an entry of an array into the caches."""

    array: str
    at: Expr


@dataclass(frozen=True, slots=True)
class Call(Statement):
    """Runs a function with arrays, from an entry of each on, and with whole numbers."""

    function: str
    arrays: tuple[tuple[str, Expr], ...]
    numbers: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Shared(Statement):
    """Totals of several threads become their sum; what follows is done by one of these threads."""

    totals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fence(Statement):
    """What went past the caches is there."""


@dataclass(frozen=True, slots=True)
class Function:
    """arrays, numbers : its parameters;  width : the lanes of its numbers"""

    name: str
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    width: int
    body: tuple[Statement, ...]
