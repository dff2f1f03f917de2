"""Expressions of the kernel language: see `statements`.

A vector is what an expression is where it has `Lanes`: ``b0[i + [0..8]]`` is eight neighbours, ``b0[p4]`` eight entries
anywhere if ``p4`` is ``b4[i + [0..8]]``. Operations are lane by lane; what is no vector is the same in all lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Expr:
    """What is computed: whole numbers, numbers of the program's type, or conditions."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A local. width : the lanes of whole numbers that are a vector, else 0"""

    name: str
    width: int = 0


@dataclass(frozen=True, slots=True)
class Whole(Expr):
    value: int


@dataclass(frozen=True, slots=True)
class Lanes(Expr):
    """The whole numbers 0, 1, ... of the lanes of a vector."""

    width: int


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
class Product(Expr):
    """The product of whole numbers."""

    a: Expr
    b: Expr


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
class Least(Expr):
    """The least of two whole numbers."""

    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class LeastLane(Expr):
    """The least whole number of a vector."""

    a: Expr


@dataclass(frozen=True, slots=True)
class Look(Expr):
    """An entry of an array of whole numbers."""

    array: str
    at: Expr


@dataclass(frozen=True, slots=True)
class Below(Expr):
    """Whether one whole number is less than another."""

    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Bits(Expr):
    """The conditions that the bits of a whole number are, one for each lane."""

    number: Expr
    width: int


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A constant of the program's type."""

    value: float


@dataclass(frozen=True, slots=True)
class Read(Expr):
    """An entry of an array of numbers. mask : where it does not hold, nothing is read, and the number is 0"""

    array: str
    at: Expr
    mask: Expr | None = None


@dataclass(frozen=True, slots=True)
class Expand(Expr):
    """Neighbours from an entry on, one after the other for the lanes where a mask holds, and 0 for the others."""

    array: str
    at: Expr
    mask: Expr


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """An operation of `ops.OPS`. is_exact : a difference of products, neither of which is fused with it"""

    op: str
    args: tuple[Expr, ...]
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Item(Expr):
    """One number of a block."""

    block: str
    number: int


@dataclass(frozen=True, slots=True)
class Turned(Expr):
    """Of 1, 2 or 4 vectors as many, in which each lane's numbers lie side by side: those of lane ``count * q + k`` in
    vector k, from lane ``count * q`` on; one of these vectors."""

    values: tuple[Expr, ...]
    number: int


def plus(a: Expr, b: Expr) -> Expr:
    """The sum, without zeros."""
    return b if a == Whole(0) else a if b == Whole(0) else Plus(a, b)


def times(number: int, a: Expr) -> Expr:
    """The multiple, without a factor of 1."""
    return a if number == 1 else Times(number, a)


def less(a: Expr, b: Expr) -> Expr:
    """The difference of whole numbers."""
    return plus(a, Whole(-b.value) if isinstance(b, Whole) else Times(-1, b))


def width(e: Expr) -> int:
    """The lanes of whole numbers that are a vector; 0 where all lanes have the same."""
    match e:
        case Name(_, lanes) | Lanes(lanes):
            return lanes
        case Plus(a, b) | Product(a, b) | Least(a, b):
            return width(a) or width(b)
        case Times(_, a) | Divided(a, _) | Remainder(a, _) | Look(_, a):
            return width(a)
    return 0


def split(at: Expr) -> tuple[Expr, int]:
    """An entry without the constant that is added last, and this."""
    match at:
        case Plus(a, Whole(value)):
            return a, value
        case Whole(value):
            return Whole(0), value
    return at, 0


class Entry(NamedTuple):
    """A sum of whole numbers, apart: a constant, the lanes' own numbers or not, and the rest."""

    constant: int
    has_lanes: bool
    rest: tuple[Expr, ...]

    @property
    def is_contiguous(self) -> bool:
        """Whether lanes have neighbours."""
        return self.has_lanes and not any(map(width, self.rest))

    @property
    def is_vector(self) -> bool:
        return self.has_lanes or any(map(width, self.rest))


def entry(at: Expr) -> Entry:
    """The parts of a sum."""
    match at:
        case Plus(a, b):
            x, y = entry(a), entry(b)
            if x.has_lanes and y.has_lanes:  # twice the lanes' numbers are no neighbours
                return Entry(0, False, (at,))
            return Entry(x.constant + y.constant, x.has_lanes or y.has_lanes, x.rest + y.rest)
        case Whole(value):
            return Entry(value, False, ())
        case Lanes():
            return Entry(0, True, ())
    return Entry(0, False, (at,))


def without_lanes(at: Expr) -> Expr:
    """The entry of the first lane."""
    match at:
        case Lanes():
            return Whole(0)
        case Plus(a, Lanes()):
            return a
        case Plus(a, Whole() as b):
            first = without_lanes(a)
            return b if first == Whole(0) else Plus(first, b)
        case Plus(a, b):
            return Plus(without_lanes(a), b) if width(a) else Plus(a, without_lanes(b))
    return at
