"""Neighbours that the members of a vector read or write are read and written together: as rows, transposed in
registers, which is two to three times faster than gather instructions on the processors measured.

::

    let x0 = b0[p1]        becomes   row row0 = b0[p1..] [0, 1, 2]
    let x1 = b0[p1 + 1]              let x0 = row0[0]
    let x2 = b0[p1 + 2]              let x1 = row0[1]
                                     let x2 = row0[2]
    b2[p3] = r0                      b2[p3..] = r0, r1
    b2[p3 + 1] = r1

Rows of a block (``y[p + s], y[p + 2 s]``) leave together, member by member: whatever finds the places of one is at
hand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from ..expressions import Expr, Item, Name, Read, Times, Whole, entry, plus, split, width
from ..statements import NUMBER, For, Let, ReadRow, Row, Statement, Write, WriteRows

ROW = 4  # neighbours read together
BLOCK = 16  # the most values of a block that is written: until all are known, they stay in registers


def is_scattered(at: Expr) -> bool:
    """Whether lanes have entries of their own, which are no neighbours."""
    found = entry(at)
    return found.is_vector and not found.is_contiguous


# -- reading ----------------------------------------------------------------------------------------------


def read_rows(statements: Iterable[Statement], is_padded: Callable[[str], bool]) -> tuple[Statement, ...]:
    """is_padded : of an array, whether what lies past its end may be read"""
    return _ReadRows(is_padded).block(statements)


class _ReadRows:
    def __init__(self, is_padded: Callable[[str], bool]):
        self.is_padded, self.numbers = is_padded, count()

    def block(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        statements = list(statements)
        row_of = self._rows(statements)
        begun: set[str] = set()
        found: list[Statement] = []
        for s in statements:
            if isinstance(s, For):
                s = replace(s, body=self.block(s.body))
            elif isinstance(s, Let) and s.name in row_of:
                row, first = row_of[s.name]
                if row.name not in begun:
                    begun.add(row.name)
                    found.append(row)
                s = Let(s.name, NUMBER, Item(row.name, split(s.value.at)[1] - first))  # type: ignore[attr-defined]
            found.append(s)
        return tuple(found)

    def _rows(self, statements: Iterable[Statement]) -> dict[str, tuple[ReadRow, int]]:
        """Numbers that are read with a neighbour: their row, and the offset of this."""
        families: dict[Hashable, list[Let]] = {}
        for s in statements:
            if isinstance(s, Let) and isinstance(s.value, Read) and s.value.mask is None and is_scattered(s.value.at):
                families.setdefault((s.value.array, split(s.value.at)[0]), []).append(s)
        found: dict[str, tuple[ReadRow, int]] = {}
        for (array, at), lets in families.items():  # type: ignore[misc]
            offsets = {s.name: split(s.value.at)[1] for s in lets}  # type: ignore[attr-defined]
            names = sorted(offsets, key=offsets.__getitem__)
            while names:
                first = offsets[names[0]]
                row = [n for n in names if offsets[n] < first + ROW]
                names = names[len(row) :]
                columns = frozenset(offsets[n] - first for n in row)
                if len(columns) > 1:
                    name = f"row{next(self.numbers)}"
                    read = ReadRow(name, array, plus(at, Whole(first)), columns, self.is_padded(array))
                    found.update({n: (read, first) for n in row})
        return found


# -- writing ----------------------------------------------------------------------------------------------


def written_rows(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Writes at the end of some statements."""
    writes = [s for s in statements if isinstance(s, Write) and not s.adds and is_scattered(s.at) and s.mask is None]
    together, place = _blocks(writes), {id(s): number for number, s in enumerate(writes)}
    last = {id(block): max(block, key=lambda s: place[id(s)]) for block in together.values()}
    found: list[Statement] = []
    for s in statements:
        block = together.get(id(s))
        if block is None:
            found.append(s)
        elif last[id(block)] is s:
            found.append(WriteRows(tuple(_row(part) for part in _in_rows(block))))
    return tuple(found)


def _row(writes: Sequence[Write]) -> Row:
    return Row(writes[0].array, writes[0].at, tuple(s.value for s in writes))


def _blocks(writes: list[Write]) -> dict[int, list[Write]]:
    """By the identity of a write all that it leaves together with, of those that do not leave alone."""
    blocks: dict[Hashable, list[list[Write]]] = {}
    for row in _in_rows(writes):
        blocks.setdefault((row[0].array, start(row[0].at)), []).append(row)
    found: dict[int, list[Write]] = {}
    for rows in blocks.values():
        is_block = any(len(columns(row[0].at)) > 1 for row in rows) and sum(map(len, rows)) <= BLOCK
        for some in [rows] if is_block else [[row] for row in rows]:
            block = [s for row in some for s in row]
            if len(block) > 1:
                found.update((id(s), block) for s in block)
    return found


def _in_rows(writes: list[Write]) -> list[list[Write]]:
    keys = [(s.array, split(s.at)[0], s.adds) if is_scattered(s.at) else None for s in writes]
    return [[writes[n] for n in row] for row in neighbours(keys, [split(s.at)[1] for s in writes])]


def neighbours(families: Sequence[Hashable], offsets: Sequence[int]) -> list[tuple[int, ...]]:
    """Numbers of entries, all of them: rows of up to `ROW` of one family that follow each other, and those alone.

    families : None of an entry that is in no row
    """
    found: dict[Hashable, list[int]] = {}
    rows: list[tuple[int, ...]] = []
    for number, family in enumerate(families):
        if family is None:
            rows.append((number,))
        else:
            found.setdefault(family, []).append(number)
    for family_ in found.values():
        family_.sort(key=lambda n: offsets[n])
        row: list[int] = []
        for number in family_:
            if row and (len(row) == ROW or offsets[number] != offsets[row[-1]] + 1):
                rows.append(tuple(row))
                row = []
            row.append(number)
        rows.append(tuple(row))
    return rows


def parts(length: int) -> Iterator[tuple[int, int]]:
    """Where the parts of a row start, and their sizes: 4, 2 or 1, as vectors have them."""
    first = 0
    while first < length:
        size = 1 << ((length - first).bit_length() - 1)
        yield first, size
        first += size


def columns(at: Expr) -> list[Expr]:
    """What columns add to an entry."""
    return [e for e in entry(at).rest if width(e) and isinstance(e.a if isinstance(e, Times) else e, Name)]


def start(at: Expr) -> tuple[Hashable, ...]:
    """What an entry has in common with those that differ by a constant, and by steps."""
    steps = columns(at)[1:]
    found = entry(at)
    return (found.has_lanes, *(e for e in found.rest if e not in steps))
