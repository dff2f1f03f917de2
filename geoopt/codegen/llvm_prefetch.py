"""Fetching ahead in LLVM IR: what later members will read and write is on its way while earlier ones are evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from operator import itemgetter

from ..integers.segments import STRIP
from ..plan.address import Address, Along
from ..plan.loops import ByCursor
from ..plan.stores import ROW_TERMS, RowStore, Store
from .llvm_memory import Memory

AHEAD = 96  # members between a prefetch and its use: a memory latency's worth of work
COLUMNS_AHEAD = 2 * AHEAD  # the same for columns, which tell what to fetch
ROUGHLY = 128  # terms, by multiples of which these are told, so that kernels that are nearly alike have one text
RUNS_AHEAD = 64  # runs between a prefetch and its use
NARROW = 2  # bytes of an entry of a column that `compress` could make narrow
LARGE = 8 << 20  # bytes that do not stay in a cache
LINE = 64  # bytes of a cache line
MOST_LINES = 8  # that one read is fetched ahead by


class Prefetch(Memory):
    """Statements that begin a vector of members."""

    def prefetch(self) -> None:
        """Fetch what later members read of the inputs and write of the outputs, where a column says which.

        Hardware prefetchers do not see such streams. Members have nearby addresses, so a few lanes stand for all.
        What was written shortly before is left out, for the schedule keeps it in cache: intermediates, and outputs
        that the kernel also reads. Past the end of a task the columns of the next are read, past the end of all
        columns their padding: a prefetch from a wrong address does nothing.
        """
        if not self.v.prefetches or self.kernel.sequences is not None:  # which hardware follows
            return
        plan, kernel = self.plan, self.kernel
        inputs = [a for a in kernel.reads if a.buffer < len(plan.variable_sizes)]
        known = {a.buffer for a in kernel.reads} | {plan.workspace}
        outputs = [store for store in kernel.stores() if store.buffer not in known and not store.adds]
        streams: dict[tuple, tuple[Address, Store | None]]
        streams = {_stream(a): (a, None) for a in reversed(inputs) if a.columns and a.loop is None}
        written = [(store.address, store) for store in outputs]
        streams |= {_stream(a): (a, store) for a, store in written if a.columns and a.loop is None}
        wanted = [(a, store) for a, store in streams.values() if not kernel.loops or isinstance(store, RowStore)]
        of_blocks = {a.table for a, _ in written if len(a.columns) > 1}
        self._prefetch_columns()
        self._prefetch_whole_lines(outputs)
        fetched = [f for address, store in wanted for f in self._lanes_fetched(address, store, of_blocks)]
        entries: dict[tuple, str] = {}
        for lane, address, offset in sorted(fetched, key=itemgetter(0)):  # so that few addresses are held
            key = address.column, lane
            if key not in entries:
                i = self.let(f"add i64 {self.member}, {AHEAD + lane}")
                entries[key] = self._entry(address, i, frozenset())
            self._fetch(self._at(address, entries[key], address.offset + offset, frozenset()))

    def _lanes_fetched(
        self, address: Address, store: Store | None, of_blocks: set[int | None]
    ) -> Iterator[tuple[int, Address, int]]:
        """Lanes that stand for all, with what is fetched for each. store : None for a read
        of_blocks : tables of stores that are rows of blocks

        Rows may be anywhere, and cross the ends of cache lines; other streams are dense.
        """
        is_row = isinstance(store, RowStore) or (store is not None and address.table in of_blocks)
        step = 1 if is_row else max(self.v.lanes // (2 if store is None else 4), 1)
        for lane in range(0, self.v.lanes, step):
            for offset in (0, ROW_TERMS - 1) if isinstance(store, RowStore) else (0,):
                yield lane, address, offset

    def prefetch_run(self, loop: int) -> None:
        """In a loop by runs, fetch what a later run reads of a large buffer, where reads of a task are too far apart
        for narrow columns."""
        plan, loops = self.plan, frozenset({loop})
        along = [a for a in self.kernel.reads if a.loop == loop and any(isinstance(term, Along) for term in a.terms)]
        for table, address in {a.table: a.start for a in along if a.table is not None}.items():
            if self.v.prefetches and plan.table(table).itemsize > NARROW and self.is_large(address):
                entry = self._entry(address, self.let(f"add i64 {self.start}, {RUNS_AHEAD}", loops), loops)
                self._fetch(self._at(address, entry, address.offset, loops), loops)

    def prefetch_terms(self, loop: int, bounds: tuple[str, str, str]) -> None:
        """Before a loop, fetch ahead in its columns, as many cache lines as a vector's terms have on average; where
        these are many, hardware follows.

        bounds : where the terms of the strip start and end, and where among its members the first lane is
        """
        columns = self._columns(loop)
        if not self.v.prefetches or not self.is_full or not columns:
            return
        start, end, within = bounds
        terms = self.kernel.loops[loop].terms / self.kernel.size
        passed = self.let(f"mul i64 {self.let(f'sub i64 {end}, {start}')}, {within}")
        first = self.let(f"add i64 {start}, {self.let(f'lshr i64 {passed}, {STRIP.bit_length() - 1}')}")
        ahead = round(terms * COLUMNS_AHEAD / ROUGHLY) * ROUGHLY
        for column, kind, size in columns:
            lines = ceil(terms * self.v.lanes * size / LINE)
            for line in range(lines if lines <= MOST_LINES else 0):
                i = self.let(f"add i64 {first}, {ahead + line * LINE // size}")
                self._fetch(self.let(f"getelementptr {kind}, ptr {column}, i64 {i}"))

    def is_large(self, address: Address) -> bool:
        """Whether its buffer does not stay in a cache."""
        return self.plan.buffer_sizes[address.buffer] * self.v.dtype.itemsize > LARGE

    def _prefetch_columns(self) -> None:
        """Fetch ahead in the columns of the members. Hardware follows such streams by itself, but each task starts
        new ones."""
        columns = self._columns(None)
        if columns:
            i = self.let(f"add i64 {self.member}, {COLUMNS_AHEAD}")
        for column, kind, _ in columns:
            self._fetch(self.let(f"getelementptr {kind}, ptr {column}, i64 {i}"))

    def _prefetch_whole_lines(self, outputs: list[Store]) -> None:
        """Fetch ahead what is written one line after the other, of large outputs."""
        addresses = [store.address for store in outputs]
        written = [a for a in addresses if a.is_sequential and self.is_large(a)]
        if written and self.v.reads_what_it_writes:
            i = self.let(f"add i64 {self.member}, {AHEAD}")
            for address in written:
                self._fetch(self._at(address, i, address.offset, frozenset()))

    def _columns(self, loop: int | None) -> list[tuple[str, str, int]]:
        """The columns that vary with the members, or in a loop: address, type and bytes of an entry."""
        kernel, workspace = self.kernel, self.plan.workspace
        listed = None if loop is None else kernel.loops[loop]
        tables = {listed.positions} if isinstance(listed, ByCursor) else kernel.columns(loop)
        base = "%c" if loop is None else "%b"
        constants = {a.buffer for a in kernel.reads if a.buffer > workspace and a.loop == loop}
        found = [(t, base, self.index_types[t][0], self.plan.table(t).itemsize) for t in tables]
        found += [(b, "%b", self.v.scalar, self.v.dtype.itemsize) for b in constants]
        in_order = sorted((self.slots[b], start, kind, size) for b, start, kind, size in found)
        return [(f"{start}{slot}", kind, size) for slot, start, kind, size in in_order]

    def _fetch(self, at: str, loops: frozenset[int] = frozenset()) -> None:
        """For writes as for reads: instructions that fetch for writing are slower (measured on Intel)."""
        self.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)", loops)


def _stream(address: Address) -> tuple:
    """Equal for neighbours."""
    return address.buffer, address.terms
