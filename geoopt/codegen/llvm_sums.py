"""Sums in LLVM IR: loops over the terms of a strip of members, with a vector of totals for each sum."""

from __future__ import annotations

from dataclasses import dataclass

from ..integers.segments import STRIP
from ..plan.loops import ByCursor, ByRun, Loop
from ..plan.planned import Joint
from ..plan.stores import RowStore
from ..template import Expression, bottom_up
from .llvm_body import zeros
from .llvm_cursors import Cursors
from .llvm_rows import Rows
from .llvm_runs import Runs


@dataclass(frozen=True)
class _Progress:
    """How far a loop is. term : the number of its next term;  entry : of that in the columns;  totals : of each sum"""

    term: str
    entry: str
    totals: list[str]


class Sums(Rows, Cursors, Runs):
    """Statements for sums, and for what is written term by term. What they sum is for others to tell."""

    def __init__(self, *arguments, loops_of: dict[int, frozenset[int]]):
        super().__init__(*arguments)
        self.loops_of = loops_of
        self.block = ""  # the label of the statements so far

    def key(self, e: Expression) -> tuple[int, int | None]:
        """Of an expression in ``values``."""
        return id(e), self.loop if self.loop in self.loops_of[id(e)] else None

    def write(self, root: int, value: str) -> None:
        """The writes of a root, but for additions."""
        for store in (s for s in self.kernel.writes[root] if not s.adds):
            if isinstance(store, RowStore):
                self.write_term(store, value)
            else:
                self.store(store, value)

    def add_up(self, joint: Joint) -> None:
        """The values of a joint's sums, and what its loop writes."""
        planned, terms = self.kernel.loops[joint.loop], [e.args[0] for e in joint.sums]
        for e in bottom_up([*terms, *(self.kernel.roots[i] for i in joint.roots)]):
            if not self.loops_of[id(e)]:
                self.value(e)  # before the loop
        self._fresh += 1
        tag = f"{self.prefix}s{self._fresh}"
        start, end, within = self._strip(planned)
        counts = next((self._counts(table) for table in planned.of_members()), None)
        if not isinstance(planned, ByRun):
            self.prefetch_terms(joint.loop, (start, end, within))
        progress = _Progress("0", self.let(f"add i64 {start}, {within}"), ["zeroinitializer"] * len(terms))
        if counts is not None and self.is_full and 2 * len(terms) > self.v.registers:
            # totals with and without a term are too many to choose from, so that is done for the last terms only
            common = self._first_end(counts, start)
            progress = self._looped(joint, f"{tag}.all", progress, common, None)
        progress = self._looped(joint, tag, progress, end, counts)
        self.values |= {self.key(e): total for e, total in zip(joint.sums, progress.totals, strict=True)}
        self.write_rows(joint.loop)

    def _looped(self, joint: Joint, tag: str, before: _Progress, end: str, counts: str | None) -> _Progress:
        """The loop over the terms up to an entry of the columns; gives where it ends.

        counts : how many terms members have; None where none ends before all do
        """
        planned, terms = self.kernel.loops[joint.loop], [e.args[0] for e in joint.sums]
        now = _Progress(f"%{tag}.t", f"%{tag}.from", [f"%{tag}.a{k}" for k in range(len(terms))])
        outside, self.inner, self.loop = self.values, [], joint.loop
        self.start, self.term = now.entry, now.term
        known, totals = dict(outside), now.totals
        if isinstance(planned, ByCursor):
            known[self.key(terms[0])] = self.term_at_position(joint.loop)
        at_once, step = (planned.at_once, planned.at_once) if isinstance(planned, ByRun) else (1, STRIP)
        for copy in range(at_once):
            self.values = dict(known)
            has_term = None  # where all lanes have
            if isinstance(planned, ByRun):
                self.start = self.let(f"add i64 {now.entry}, {copy}", self._current())
                has_term = self.begin_run(planned.masks, self._current())
                self.prefetch_run(joint.loop)
            elif counts is not None:
                has_term = self._is_below(counts)
            totals = self._accumulated(totals, [self.value(e) for e in terms], has_term)
        for i in joint.roots:
            self.write(i, self.value(self.kernel.roots[i]))
        after = _Progress(f"%{tag}.next", f"%{tag}.after", totals)
        self._write_loop(tag, before, now, after, end, step)
        self.values, self.inner, self.loop = outside, None, None
        return now

    def _write_loop(self, tag: str, before: _Progress, now: _Progress, after: _Progress, end: str, step: int) -> None:
        """The blocks of a loop around its body. step : from the entry of a term, or run, to that of the next"""
        first, self.block = self.block, f"{tag}.exit"
        sources = zip(now.totals, before.totals, after.totals, strict=True)
        self.outer += [
            f"  br label %{tag}.head",
            f"{tag}.head:",
            f"  {now.term} = phi i64 [ {before.term}, %{first} ], [ {after.term}, %{tag}.body ]",
            f"  {now.entry} = phi i64 [ {before.entry}, %{first} ], [ {after.entry}, %{tag}.body ]",
            *(f"  {a} = phi {self.v.vector} [ {b}, %{first} ], [ {c}, %{tag}.body ]" for a, b, c in sources),
            f"  %{tag}.go = icmp slt i64 {now.entry}, {end}",
            f"  br i1 %{tag}.go, label %{tag}.body, label %{tag}.exit",
            f"{tag}.body:",
            *(self.inner or []),
            f"  {after.term} = add i64 {now.term}, 1",
            f"  {after.entry} = add i64 {now.entry}, {step}",
            f"  br label %{tag}.head",
            f"{tag}.exit:",
        ]

    def _accumulated(self, totals: list[str], values: list[str], has_term: str | None) -> list[str]:
        """The totals with terms' values added in the lanes that have them."""
        v, loops = self.v, self._current()
        sums = [
            self.let(f"fadd {v.flags_of_totals} {v.vector} {total}, {value}", loops)
            for total, value in zip(totals, values, strict=True)
        ]
        if has_term is None:
            return sums
        pairs = (f"{v.vector} {all_}, {v.vector} {total}" for all_, total in zip(sums, totals, strict=True))
        return [self.let(f"select {v.mask} {has_term}, {pair}", loops) for pair in pairs]

    def _is_below(self, counts: str) -> str:
        """Which members have a term of the current number; what others have in the columns are copies."""
        kind, loops = f"<{self.v.lanes} x i32>", self._current()
        number = self.let(f"trunc i64 {self.term} to i32", loops)
        one = self.let(f"insertelement {kind} poison, i32 {number}, i64 0", loops)
        many = self.let(f"shufflevector {kind} {one}, {kind} poison, {zeros(self.v.lanes)}", loops)
        return self.let(f"icmp ult {kind} {many}, {counts}", loops)

    def _first_end(self, counts: str, start: str) -> str:
        """The entry of the columns at which the terms of the vector's first member to have no more end."""
        kind = f"<{self.v.lanes} x i32>"
        name = f"@llvm.vector.reduce.umin.v{self.v.lanes}i32"
        self.declare(f"i32 {name}({kind})")
        least = self.let(f"zext i32 {self.let(f'call i32 {name}({kind} {counts})')} to i64")
        return self.let(f"add i64 {start}, {self.let(f'mul i64 {least}, {STRIP}')}")

    def _current(self) -> frozenset[int]:
        return frozenset() if self.loop is None else frozenset({self.loop})

    def _strip(self, loop: Loop) -> tuple[str, str, str]:
        """Where the terms of the current strip start and end in the columns, and where the first lane's are."""
        starts = loop.starts
        key = ("strip", starts)
        if key not in self.values:
            done = self.let(f"sub i64 {self.member}, %begin")
            first = self.let(f"mul i64 %strip, {loop.split}")
            width = STRIP // loop.split
            number = self.let(f"add i64 {first}, {self.let(f'lshr i64 {done}, {width.bit_length() - 1}')}")
            kind, extend = self.index_types[starts]
            at = self.let(f"getelementptr {kind}, ptr %b{self.slots[starts]}, i64 {number}")
            bounds = [
                self.let(f"load {kind}, ptr {self.let(f'getelementptr {kind}, ptr {at}, i64 {k}')}") for k in (0, 1)
            ]
            if kind != "i64":
                bounds = [self.let(f"{extend} {kind} {b} to i64") for b in bounds]
            within = self.let(f"and i64 {done}, {STRIP - 1}") if not isinstance(loop, ByRun) else "0"
            self.values[key] = (*bounds, within)  # type: ignore[assignment]
        return self.values[key]  # type: ignore[return-value]

    def _counts(self, table: int) -> str:
        """The numbers of terms of the members, as a vector."""
        lanes = self.v.lanes
        kind, _ = self.index_types[table]
        at = self.let(f"getelementptr {kind}, ptr %c{self.slots[table]}, i64 {self.member}")
        counts = self.let(f"load <{lanes} x {kind}>, ptr {at}, align 1")
        return counts if kind == "i32" else self.let(f"zext <{lanes} x {kind}> {counts} to <{lanes} x i32>")
