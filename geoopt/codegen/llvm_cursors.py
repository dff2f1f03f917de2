"""Cursors in LLVM IR: before its members, a task computes all terms of a sum by plain vectors.

They are put on the stack, in a buffer of a number after the last table's, where members find them by their positions.
"""

from __future__ import annotations

from math import ceil

from ..integers.segments import STRIP
from ..plan.address import Address, listed
from ..plan.loops import ByCursor
from ..plan.planned import Joint
from ..template import Expression
from .llvm_body import zeros
from .llvm_memory import terms_buffer
from .llvm_prefetch import LINE, MOST_LINES, Prefetch

CURSORS_AHEAD = 16  # cursors between a prefetch and its use


class Cursors(Prefetch):
    """Statements for the loops by cursors. Names that begin with ``%r`` and the loop's number are of its terms: ``c``
    is the cursor, ``j`` the first of a vector's terms among its own, ``mask`` those that it has.

    ``per_cursor`` collects what is done once for each cursor, ``inner`` what is done for each vector of its terms.
    """

    def value(self, e: Expression) -> str:
        """The name of an expression's value."""
        raise NotImplementedError

    def term_at_position(self, loop: int) -> str:
        """The members' terms, inside the loop."""
        address = listed(terms_buffer(self.plan, loop), 0, self._cursors_of(loop).positions, loop)
        loops = frozenset({loop})
        return self._gathered(address, loops) if self.v.hardware_gathers else self._picked(address, loops)

    def terms_of_task(self, joint: Joint) -> list[str]:
        """The blocks that compute all terms of a task; the last one is open."""
        self.loop, self.inner, self.per_cursor = joint.loop, [], []
        value, v, r = self.value(joint.sums[0].args[0]), self.v, f"r{joint.loop}"
        return [
            *self.outer,
            *self._bounds(joint.loop),
            f"  br label %{r}.before",
            f"{r}.before:",
            f"  br label %{r}.head",
            f"{r}.head:",
            f"  %{r}.c = phi i64 [ %{r}.first, %{r}.before ], [ %{r}.next, %{r}.end ]",
            f"  %{r}.at = phi i64 [ 0, %{r}.before ], [ %{r}.after, %{r}.end ]",
            f"  %{r}.go = icmp slt i64 %{r}.c, %{r}.last",
            f"  br i1 %{r}.go, label %{r}.cursor, label %{r}.done",
            f"{r}.cursor:",
            *self._length(joint.loop),
            *self.per_cursor,
            f"  br label %{r}.body",
            f"{r}.body:",
            f"  %{r}.j = phi i64 [ 0, %{r}.cursor ], [ %{r}.further, %{r}.body ]",
            *self._mask(r),
            *self.inner,
            f"  %{r}.term = getelementptr {v.scalar}, ptr %{r}.begin, i64 %{r}.j",
            f"  store {v.vector} {value}, ptr %{r}.term, align {v.dtype.itemsize}",
            f"  %{r}.further = add i64 %{r}.j, {v.lanes}",
            f"  %{r}.more = icmp slt i64 %{r}.further, %{r}.length",
            f"  br i1 %{r}.more, label %{r}.body, label %{r}.end",
            f"{r}.end:",
            f"  %{r}.next = add i64 %{r}.c, 1",
            f"  %{r}.after = add i64 %{r}.at, %{r}.length",
            f"  br label %{r}.head",
            f"{r}.done:",
        ]

    def allocated_terms(self, loop: int) -> str:
        """The statement that makes room for the terms of a task."""
        room = self._cursors_of(loop).room + self.v.lanes  # whole vectors are stored
        return f"  {self._terms(loop)} = alloca [{room} x {self.v.scalar}], align {self.v.alignment}"

    def leaf(self, number: int) -> str:
        address = self.kernel.reads[number]
        is_here = address.loop is not None and isinstance(self.kernel.loops[address.loop], ByCursor)
        return self._at_cursor(address) if is_here else super().leaf(number)

    def _at_cursor(self, address: Address) -> str:
        """What the terms of a vector read: one value, or neighbours."""
        v, loop, vectors, start = self.v, address.loop, self.inner, address.start
        assert loop is not None
        loops, self.inner = frozenset({loop}), self.per_cursor
        begin = self._at(start, self._entry(start, f"%r{loop}.c", loops), start.offset, loops)
        one = None if start != address else self._splat(self.let(f"load {v.scalar}, ptr {begin}", loops), loops)
        if one is None:
            self._prefetch_cursor(start)
        self.inner = vectors
        if one is not None:
            return one
        at = self.let(f"getelementptr {v.scalar}, ptr {begin}, i64 %r{loop}.j", loops)
        return self.masked_load(at, f"%r{loop}.mask", loops)

    def _prefetch_cursor(self, start: Address) -> None:
        """Fetch what a later cursor reads of a large buffer, as much as cursors read on average."""
        loop, size = start.loop, self.v.dtype.itemsize
        assert loop is not None
        if not self.v.prefetches or not self.is_large(start):
            return
        loops, cursors = frozenset({loop}), self.plan.table(self._cursors_of(loop).lengths).size
        later = self._entry(start, self.let(f"add i64 %r{loop}.c, {CURSORS_AHEAD}", loops), loops)
        lines = ceil(self.kernel.loops[loop].terms / cursors * size / LINE)
        for line in range(min(lines, MOST_LINES)):
            self._fetch(self._at(start, later, start.offset + line * LINE // size, loops), loops)

    def _bounds(self, loop: int) -> list[str]:
        """The first cursor of the task, and that behind its last."""
        r, table = f"%r{loop}", self._cursors_of(loop).first
        kind, extend = self.index_types[table]
        wide = f"{extend} {kind} {{}} to i64" if kind != "i64" else "add i64 {}, 0"
        return [
            f"  {r}.members = sub i64 %end, %begin",
            f"  {r}.padded = add i64 {r}.members, {STRIP - 1}",
            f"  {r}.strips = lshr i64 {r}.padded, {STRIP.bit_length() - 1}",
            f"  {r}.first.at = getelementptr {kind}, ptr %b{self.slots[table]}, i64 %strip",
            f"  {r}.last.at = getelementptr {kind}, ptr {r}.first.at, i64 {r}.strips",
            *(f"  {r}.{end}.listed = load {kind}, ptr {r}.{end}.at" for end in ("first", "last")),
            *(f"  {r}.{end} = {wide.format(f'{r}.{end}.listed')}" for end in ("first", "last")),
        ]

    def _length(self, loop: int) -> list[str]:
        """How many terms the cursor has, and where they go."""
        r, table = f"%r{loop}", self._cursors_of(loop).lengths
        kind, _ = self.index_types[table]
        return [
            f"  {r}.length.at = getelementptr {kind}, ptr %b{self.slots[table]}, i64 {r}.c",
            f"  {r}.length.listed = load {kind}, ptr {r}.length.at",
            f"  {r}.length = zext {kind} {r}.length.listed to i64",
            f"  {r}.begin = getelementptr {self.v.scalar}, ptr {self._terms(loop)}, i64 {r}.at",
        ]

    def _mask(self, r: str) -> list[str]:
        """Which terms of a vector the cursor has."""
        v, kind = self.v, f"i{8 * self.v.dtype.itemsize}"  # as wide as what the mask is for
        steps = ", ".join(f"{kind} {k}" for k in range(v.lanes))
        narrow = "add i64 {}, 0" if kind == "i64" else f"trunc i64 {{}} to {kind}"
        return [
            f"  %{r}.left = sub i64 %{r}.length, %{r}.j",
            f"  %{r}.narrow = {narrow.format(f'%{r}.left')}",
            f"  %{r}.one = insertelement <{v.lanes} x {kind}> poison, {kind} %{r}.narrow, i64 0",
            f"  %{r}.all = shufflevector <{v.lanes} x {kind}> %{r}.one, <{v.lanes} x {kind}> poison, {zeros(v.lanes)}",
            f"  %{r}.mask = icmp slt <{v.lanes} x {kind}> <{steps}>, %{r}.all",
        ]

    def _terms(self, loop: int) -> str:
        """The address of a loop's terms."""
        return f"%b{self.slots[terms_buffer(self.plan, loop)]}"

    def _cursors_of(self, loop: int) -> ByCursor:
        found = self.kernel.loops[loop]
        assert isinstance(found, ByCursor)
        return found
