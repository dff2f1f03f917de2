"""Addresses: which entry of a buffer a member, or a term of a loop, reads or writes. An address is an offset and a sum
of terms, of the kinds below.

====================  ==================  =================================================
address               entry               terms
====================  ==================  =================================================
of one value          ``7``               none
in order              ``3 * i + 7``       ``Linear(3)``
listed                ``b9[i] + 7``       ``Listed(9)``
counted from a task   ``base + 3*b9[i]``  ``OfTask(FIELDS), Listed(9, times=3)``
rows of a block       ``b9[i] + 2*b8[i]`` ``Listed(9), Listed(8, times=2)``
along a run           ``b9[i] + r``       ``Listed(9), Along(1)``
====================  ==================  =================================================

``i`` is the number of the member, or of the entry of a loop's columns; ``r`` is the number of the term in its run, or
of the member in its sequence. A printer has one function for each kind of term, and refuses a kind that it does not
know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..errors import InternalError
from .task import field_name


class Positions(NamedTuple):
    """Where a task's members, or a loop's terms, are; or those of several tasks.

    task : the row, or by field what each member's, or entry's, task has;  table : the content of a buffer of integers
    index : the number of each member, or of each term's entry in the loop's columns
    listed : the entry of the columns that is looked up for each
    along : the number of each term among those of its member, run or cursor, or of each member in its sequence; None
        where there is one entry per member
    """

    task: np.ndarray | Mapping[int, np.ndarray]
    table: Callable[[int], np.ndarray]
    index: np.ndarray
    listed: np.ndarray
    along: np.ndarray | None


class Term:
    """One kind of term. Printers tell kinds apart by their classes."""

    __slots__ = ()

    def value(self, at: Positions) -> np.ndarray | int:
        """What it adds to the entry of each member, or term."""
        raise NotImplementedError

    def tables(self) -> tuple[int, ...]:
        """The buffers that it looks up."""
        return ()

    def moved(self, number: Callable[[int], int]) -> Term:
        """With its tables among others."""
        return self


@dataclass(frozen=True, slots=True)
class Linear(Term):
    """``times * i``"""

    times: int

    def value(self, at: Positions) -> np.ndarray:
        return self.times * at.index

    def __str__(self) -> str:
        return _product(self.times, "{i}")


@dataclass(frozen=True, slots=True)
class Listed(Term):
    """``times * table[i]``"""

    table: int
    times: int = 1

    def value(self, at: Positions) -> np.ndarray:
        return self.times * at.table(self.table)[at.listed].astype(np.int64)

    def tables(self) -> tuple[int, ...]:
        return (self.table,)

    def moved(self, number: Callable[[int], int]) -> Listed:
        return Listed(number(self.table), self.times)

    def __str__(self) -> str:
        return _product(self.times, f"b{self.table}[{{i}}]")


@dataclass(frozen=True, slots=True)
class OfTask(Term):
    """``times * task[field]``"""

    field: int
    times: int = 1

    def value(self, at: Positions) -> np.ndarray:
        return self.times * at.task[self.field]

    def __str__(self) -> str:
        return _product(self.times, field_name(self.field))


@dataclass(frozen=True, slots=True)
class Along(Term):
    """``times * r``, in loops by runs or by cursors, and of the members of a sequence"""

    times: int

    def value(self, at: Positions) -> np.ndarray:
        assert at.along is not None
        return self.times * at.along

    def __str__(self) -> str:
        return _product(self.times, "r")


class Sum(NamedTuple):
    """What a rule makes of a term."""

    offset: int
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Address:
    """buffer : read or written;  loop : in which there is an entry per term, None where there is one per member"""

    buffer: int
    offset: int = 0
    terms: tuple[Term, ...] = ()
    loop: int | None = None

    def at(self, offset: int) -> Address:
        """With another offset."""
        return Address(self.buffer, offset, self.terms, self.loop)

    def of(self, buffer: int) -> Address:
        """Of another buffer."""
        return Address(buffer, self.offset, self.terms, self.loop)

    @property
    def family(self) -> Address:
        """What it has in common with addresses of entries that differ from its own by a constant."""
        return self.at(0)

    @cached_property
    def varying(self) -> tuple[Term, ...]:
        """The terms that differ within a task."""
        of_task = self.of_task
        return tuple(t for t in self.terms if t not in of_task) if of_task else self.terms

    @property
    def column(self) -> tuple[tuple[Term, ...], int | None]:
        """What it has in common with addresses, of any buffer, whose entries differ from its own by what tasks know."""
        return self.varying, self.loop

    @property
    def start(self) -> Address:
        """The address of the first term of each run or cursor."""
        return replace(self, terms=tuple(t for t in self.terms if not isinstance(t, Along)))

    @cached_property
    def of_task(self) -> tuple[OfTask, ...]:
        """The terms that are equal within a task."""
        return tuple([t for t in self.terms if isinstance(t, OfTask)])

    @cached_property
    def columns(self) -> tuple[Listed, ...]:
        return tuple([t for t in self.terms if isinstance(t, Listed)])

    @property
    def table(self) -> int | None:
        """That of its first column, if it has any."""
        return next((t.table for t in self.terms if isinstance(t, Listed)), None)

    @property
    def plain(self) -> tuple[int | None, int]:
        """The table and the stride, None and 0 where it has none, of an address before any encoding: of at most one
        term, and of one per member or term."""
        match self.terms:
            case ():
                return None, 0
            case (Linear(stride),):
                return None, stride
            case (Listed(table, 1),):
                return table, 0
        raise InternalError("plan", f"the address {self} has been encoded")

    @property
    def is_uniform(self) -> bool:
        """Whether all members (or terms) of a task have one entry."""
        return not self.varying

    @property
    def is_sequential(self) -> bool:
        """Whether the entries of members (or terms) follow each other."""
        return self.varying == (Linear(1),)

    def tables(self) -> list[int]:
        return [table for term in self.terms for table in term.tables()]

    def rewritten(self, rule: Callable[[Term], Sum]) -> Address:
        """With what a rule makes of each term."""
        sums = [rule(term) for term in self.terms]
        terms = tuple(term for found in sums for term in found.terms)
        return replace(self, offset=self.offset + sum(found.offset for found in sums), terms=terms)

    def entries(self, at: Positions) -> np.ndarray:
        """The entry of each member, or term."""
        found = np.full(len(at.index), self.offset)
        for term in self.terms:
            found += term.value(at)
        return found

    def __str__(self) -> str:
        i = "i" if self.loop is None else f"t{self.loop}"
        parts = [str(term).format(i=i) for term in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return f"b{self.buffer}[{'+'.join(parts).replace('+-', '-')}]"


def linear(buffer: int, offset: int, stride: int, loop: int | None = None) -> Address:
    """The address ``stride * i + offset``."""
    return Address(buffer, offset, (Linear(stride),) if stride else (), loop)


def listed(buffer: int, offset: int, table: int, loop: int | None = None) -> Address:
    """The address ``table[i] + offset``."""
    return Address(buffer, offset, (Listed(table),), loop)


def tables_of(addresses: Iterable[Address]) -> set[int]:
    return {table for address in addresses for table in address.tables()}


def _product(times: int, factor: str) -> str:
    return {1: factor, -1: f"-{factor}"}.get(times, f"{times}*{factor}")
