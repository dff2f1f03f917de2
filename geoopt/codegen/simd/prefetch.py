"""Fetching ahead: what later members will read and write is on its way while earlier ones are evaluated.

::

    let x0 = b0[p1]   becomes   let q0 = i + 96
                                prefetch b0[c1[q0]]
                                let x0 = b0[p1]
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from operator import itemgetter

from ...errors import InternalError
from ...integers.segments import STRIP
from ...plan.address import Address, Along, Linear, Listed
from ...plan.loops import ByCursor
from ...plan.stores import ROW_TERMS, RowStore, Store
from ..expressions import Divided, Expr, Look, Name, Product, Remainder, Whole, less, plus, times
from ..statements import INDEX, Let, Prefetch, Statement
from ..vectors import Vectors
from .arrays import Arrays
from .outlines import CONSTANTS, INPUT, OUTPUT, Outline

AHEAD = 96  # members between a prefetch and its use: a memory latency's worth of work
COLUMNS_AHEAD = 2 * AHEAD  # the same for columns, which tell what to fetch
ROUGHLY = 128  # entries: how far ahead is a multiple of these, so that kernels that are nearly alike have one text
RUNS_AHEAD = 64  # runs between a prefetch and its use
CURSORS_AHEAD = 16  # cursors between a prefetch and its use
NARROW = 2  # bytes of an entry of a column that `compress` could make narrow
LINE = 64  # bytes of a cache line
MOST_LINES = 8  # that one read is fetched ahead by


class Prefetching:
    """What is fetched ahead in a kernel; none where the processor, or its options, do without."""

    def __init__(self, outline: Outline, vectors: Vectors, arrays: Arrays):
        self.outline, self.kernel, self.vectors, self.arrays = outline, outline.kernel, vectors, arrays
        self.size = vectors.dtype.itemsize

    def of_members(self) -> Iterator[Statement]:
        """Before a vector of members: what later members read of the inputs and write of the outputs, where a column
        says which.

        Hardware prefetchers do not see such streams. Members have nearby addresses, so a few lanes stand for all.
        What was written shortly before is left out, for the schedule keeps it in cache: intermediates, and outputs
        that the kernel also reads. Past the end of a task the columns of the next are read, past the end of all
        columns their padding: a prefetch from a wrong address does nothing.
        """
        kernel, arrays = self.kernel, self.outline.arrays
        if not self.vectors.prefetches or kernel.sequences is not None:  # which hardware follows
            return
        inputs = [a for a in kernel.reads if arrays[a.buffer].kind == INPUT]
        read = {arrays[a.buffer].of for a in kernel.reads}
        stores = ((store, arrays[store.buffer]) for store in kernel.stores() if not store.adds)
        outputs = [store for store, array in stores if array.kind == OUTPUT and array.of not in read]
        streams: dict[tuple, tuple[Address, Store | None]]
        streams = {self._stream(a): (a, None) for a in reversed(inputs) if a.columns and a.loop is None}
        written = [(store.address, store) for store in outputs]
        streams |= {self._stream(a): (a, store) for a, store in written if a.columns and a.loop is None}
        wanted = [(a, store) for a, store in streams.values() if not kernel.loops or isinstance(store, RowStore)]
        of_blocks = {a.table for a, _ in written if len(a.columns) > 1}
        yield from self._of_columns()
        yield from self._of_whole_lines(outputs)
        fetched = [f for address, store in wanted for f in self._lanes(address, store, of_blocks)]
        entries: dict[tuple, Name] = {}
        for lane, address, offset in sorted(fetched, key=itemgetter(0)):  # so that few addresses are held
            key = address.column, lane
            if key not in entries:
                entries[key] = Name(f"q{len(entries)}")
                later = plus(Name("i"), Whole(AHEAD + lane))
                yield Let(entries[key].name, INDEX, self._entry(address, later))
            yield self._fetch(address, plus(entries[key], Whole(address.offset + offset)))

    def of_run(self, loop: int, run: Expr) -> Iterator[Statement]:
        """In a loop by runs: what a later run reads of a large buffer, where reads of a task are too far apart for
        narrow columns."""
        along = [a for a in self.kernel.reads if a.loop == loop and any(isinstance(term, Along) for term in a.terms)]
        for table, address in {a.table: a.start for a in along if a.table is not None}.items():
            if self.vectors.prefetches and self.outline.arrays[table].itemsize > NARROW and self.is_large(address):
                entry = self._entry(address, plus(run, Whole(RUNS_AHEAD)))
                yield self._fetch(address, plus(entry, Whole(address.offset)))

    def of_terms(self, loop: int, start: Expr, end: Expr) -> Iterator[Statement]:
        """Before a loop: its columns, as many cache lines as a vector's terms have on average; where these are many,
        hardware follows. start, end : of the terms of the strip"""
        columns = self._columns(loop)
        if not self.vectors.prefetches or not columns:
            return
        terms = self.outline.averages[loop].of_member
        within = Remainder(less(Name("i"), Name("begin")), STRIP)
        first, ahead = Name(f"fetched{loop}"), round(terms * COLUMNS_AHEAD / ROUGHLY) * ROUGHLY
        yield Let(first.name, INDEX, plus(start, Divided(Product(less(end, start), within), STRIP)))
        for column, size in columns:
            lines = ceil(terms * self.vectors.lanes * size / LINE)
            for line in range(lines if lines <= MOST_LINES else 0):
                yield Prefetch(column, plus(first, Whole(ahead + line * LINE // size)))

    def of_cursor(self, address: Address, cursor: Expr) -> Iterator[Statement]:
        """What a later cursor reads of a large buffer, as much as cursors read on average. address : where they
        begin"""
        assert address.loop is not None
        if not self.vectors.prefetches or not self.is_large(address):
            return
        later = self._entry(address, plus(cursor, Whole(CURSORS_AHEAD)))
        lines = ceil(self.outline.averages[address.loop].of_cursor * self.size / LINE)
        for line in range(min(lines, MOST_LINES)):
            yield self._fetch(address, plus(later, Whole(address.offset + line * LINE // self.size)))

    def is_large(self, address: Address) -> bool:
        """Whether its buffer does not stay in a cache."""
        return self.outline.arrays[address.buffer].is_large

    def _lanes(
        self, address: Address, store: Store | None, of_blocks: set[int | None]
    ) -> Iterator[tuple[int, Address, int]]:
        """Lanes that stand for all, with what is fetched for each. store : None for a read
        of_blocks : tables of stores that are rows of blocks

        Rows may be anywhere, and cross the ends of cache lines; other streams are dense.
        """
        is_row = isinstance(store, RowStore) or (store is not None and address.table in of_blocks)
        step = 1 if is_row else max(self.vectors.lanes // (2 if store is None else 4), 1)
        for lane in range(0, self.vectors.lanes, step):
            for offset in (0, ROW_TERMS - 1) if isinstance(store, RowStore) else (0,):
                yield lane, address, offset

    def _of_columns(self) -> Iterator[Statement]:
        """The columns of the members. Hardware follows such streams by itself, but each task starts new ones."""
        for column, _ in self._columns(None):
            yield Prefetch(column, plus(Name("i"), Whole(COLUMNS_AHEAD)))

    def _of_whole_lines(self, outputs: list[Store]) -> Iterator[Statement]:
        """What is written one line after the other, of large outputs."""
        if self.vectors.reads_what_it_writes:
            for address in (store.address for store in outputs):
                if address.is_sequential and self.is_large(address):
                    yield self._fetch(address, plus(Name("i"), Whole(AHEAD + address.offset)))

    def _columns(self, loop: int | None) -> list[tuple[str, int]]:
        """The columns that vary with the members, or in a loop, and the bytes of an entry of each."""
        kernel, names, arrays = self.kernel, self.arrays, self.outline.arrays
        planned = None if loop is None else kernel.loops[loop]
        tables = {planned.positions} if isinstance(planned, ByCursor) else kernel.columns(loop)
        constants = {a.buffer for a in kernel.reads if arrays[a.buffer].kind == CONSTANTS and a.loop == loop}
        name = names.of_members if loop is None else names.of
        found = [(t, name(t), arrays[t].itemsize) for t in tables]
        found += [(b, names.of(b), self.size) for b in constants]
        return [(column, size) for _, column, size in sorted(found)]

    def _entry(self, address: Address, i: Expr) -> Expr:
        """The entry of member (or of the columns' entry) ``i``, without the offset."""
        found: Expr = Whole(0)
        for term in address.varying:
            match term:
                case Linear(number):
                    found = plus(found, times(number, i))
                case Listed(table, number):
                    column = self.arrays.of_members(table) if address.loop is None else self.arrays.of(table)
                    found = plus(found, times(number, Look(column, i)))
                case _:
                    raise InternalError("prefetch", f"there is no code for {type(term).__name__} in {address}")
        return found

    def _fetch(self, address: Address, entry: Expr) -> Statement:
        return Prefetch(self.arrays.from_start(address), entry)

    def _stream(self, address: Address) -> tuple:
        """Equal for neighbours."""
        return self.outline.arrays[address.buffer].of, address.terms
