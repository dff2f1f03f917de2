"""Fetching ahead in LLVM IR: what later members will read and write is on its way while earlier ones are evaluated."""

from __future__ import annotations

from ..plan import ROW_TERMS
from .llvm_memory import Memory

AHEAD = 96  # members between a prefetch and its use: a memory latency's worth of work
RUNS_AHEAD = 64  # runs between a prefetch and its use
NARROW = 2  # bytes of an entry of a column that `compress` could make narrow
LARGE = 8 << 20  # bytes that do not stay in a cache
FOLLOWED = 16  # columns that hardware fetches ahead by itself


class Prefetch(Memory):
    """Statements that begin a vector of members."""

    def prefetch(self) -> None:
        """Fetch what later members read of the inputs and write of the outputs, where a column says which.

        Hardware prefetchers do not see such streams. Members have nearby addresses, so a few lanes stand for all.
        What was written shortly before is left out, for the schedule keeps it in cache: intermediates, and outputs
        that the kernel also reads. Past the end of a task the columns of the next are read, past the end of all
        columns their padding: a prefetch from a wrong address does nothing.
        """
        plan, kernel = self.plan, self.kernel
        inputs = [a for a in kernel.reads if a.buffer < len(plan.variable_sizes)]
        known = {a.buffer for a in kernel.reads} | {plan.workspace}
        outputs = [a for places in kernel.writes for a in places if a.buffer not in known and not a.adds]
        streams = {
            (a.buffer, a.table, a.base): (a, 0) for a in reversed(inputs) if a.table is not None and a.loop is None
        }
        streams |= {
            (a.buffer, a.table, a.base): (a, 1) for a in outputs if a.table is not None and a.column_loop is None
        }
        wanted = [w for w in streams.values() if not kernel.loops or w[0].bits is not None]
        if not self.v.prefetches:
            return
        self._prefetch_columns()
        entries: dict[tuple, str] = {}
        for access, is_write in wanted:
            # rows may be anywhere, and cross the ends of cache lines; other streams are dense
            step = 1 if access.bits is not None else max(self.v.lanes // (4 if is_write else 2), 1)
            offsets = (0, ROW_TERMS - 1) if access.bits is not None else (0,)
            for lane in range(0, self.v.lanes, step):
                if (access.table, lane) not in entries:
                    i = self.let(f"add i64 %i, {AHEAD + lane}")
                    entries[access.table, lane] = self._entry(access, i, frozenset())
                for offset in offsets:
                    at = self._address(access, entries[access.table, lane], access.offset + offset, frozenset())
                    self._fetch(at, is_write)

    def prefetch_run(self, loop: int) -> None:
        """In a loop by runs, fetch what a later run reads of a large buffer, where reads of a task are too far apart
        for narrow columns."""
        plan, loops = self.plan, frozenset({loop})
        reads = {a.table: a for a in self.kernel.reads if a.loop == loop and a.stride and a.table is not None}
        for table, access in reads.items():
            is_far = (
                plan.table(table).itemsize > NARROW and plan.buffer_sizes[access.buffer] * self.v.dtype.itemsize > LARGE
            )
            if self.v.prefetches and is_far:
                entry = self._entry(access, self.let(f"add i64 {self.start}, {RUNS_AHEAD}", loops), loops)
                self._fetch(self._address(access, entry, access.offset, loops), 0, loops)

    def _prefetch_columns(self) -> None:
        """Fetch ahead in the columns, where there are more of them than hardware follows."""
        kernel, workspace = self.kernel, self.plan.workspace
        columns = {
            (f"%c{a.table}", self.index_types[a.table][0])
            for a in kernel.accesses()
            if a.table is not None and a.column_loop is None
        }
        constants = {(f"%b{a.buffer}", self.v.scalar) for a in kernel.reads if a.buffer > workspace and a.loop is None}
        if len(columns) + len(constants) <= FOLLOWED:
            return
        i = self.let(f"add i64 %i, {AHEAD}")
        for column, kind in sorted(columns | constants):
            at = self.let(f"getelementptr {kind}, ptr {column}, i64 {i}")
            self._fetch(at, 0)

    def _fetch(self, at: str, is_write: int, loops: frozenset[int] = frozenset()) -> None:
        self.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 {is_write}, i32 3, i32 1)", loops)
