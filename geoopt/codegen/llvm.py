"""`Plan` to LLVM IR with explicit vectors: one function per kernel, one vector lane per member.

``void k(ptr buffers, ptr task)`` evaluates the members of a task; ``buffers`` are the addresses of the plan's
buffers. The vector loop runs while whole vectors remain; a masked copy of its body does the rest.
"""

from __future__ import annotations

from ..ops import OPS
from ..plan import (
    APART,
    BEGIN,
    COLUMN,
    END,
    FIELDS,
    FIRST_STRIP,
    SHIFT,
    STRIP,
    Joint,
    Plan,
    PlannedKernel,
    PlannedLoop,
)
from ..template import Expression, bottom_up
from .llvm_cursors import Cursors
from .llvm_fission import AT_ONCE, Piece, pieces_of, rooms_of
from .llvm_math import Functions
from .llvm_memory import FLAGS, Vectors, zeros
from .llvm_projection import ROUTINES
from .llvm_rows import Rows
from .llvm_runs import Runs
from .llvm_scatter import Additions, Room
from .llvm_stores import NOWHERE


def emit(plan: Plan, vectors: Vectors) -> str:
    """The text of a module with the functions ``k0, k1, ...``."""
    declarations: dict[str, None] = {}
    kernels = enumerate(plan.kernels)
    functions = [_Function(plan, kernel, vectors, declarations).text(f"k{i}") for i, kernel in kernels]
    return "\n".join([*functions, *declarations, ""])


class _Function:
    """One kernel's text."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, vectors: Vectors, declarations: dict[str, None]):
        self.plan, self.kernel, self.vectors, self.declarations = plan, kernel, vectors, declarations
        self.loops_of = kernel.loops_of()
        self.room = Room(kernel, vectors)
        self.pieces = pieces_of(kernel)

    def text(self, name: str) -> str:
        body, tail = self._body("f"), self._body("t")
        whole = body.in_pieces(self.pieces) if self.pieces else body.lines("body", self.room)
        rest = tail.lines("tail", self.room)
        rooms = [*body.allocations(), *tail.allocations(), *self.room.allocations()]
        lines = [f"define void @{name}(ptr noalias %buffers, ptr noalias %task) {{", *self._start(rooms)]
        lines += [
            "  br label %head",
            "head:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %wrap ]",
            *self.room.in_turn(),
            "  %whole = icmp slt i64 %i, %stop",
            "  br i1 %whole, label %body, label %rest",
            "body:",
            *whole,
            *self.room.call(name, "%before", "%full"),
            "  br label %wrap",
            "wrap:",
            *([] if self.pieces else [f"  %next = add i64 %i, {self.vectors.lanes}"]),
            "  br label %head",
            "rest:",
            *self.room.call(name, "%before", "%full"),
            "  %left = sub i64 %end, %i",
            "  %any = icmp slt i64 %i, %end",
            "  br i1 %any, label %tail, label %done",
            "tail:",
            *rest,
            *self.room.call(name, "%room", "%left"),
            "  br label %done",
            "done:",
            "  ret void",
            "}",
            self.room.text(name),
        ]
        return "\n".join(lines)

    def _start(self, rooms: list[str]) -> list[str]:
        """What a task does before its members: all of the block ``entry`` but its end. rooms : on the stack"""
        loops = {j.loop: j for j in self.kernel.joints() if self.kernel.loops[j.loop].cursors is not None}
        if not loops:
            return ["entry:", *self._entry(), *rooms]
        bodies = {loop: self._body(f"p{loop}.") for loop in loops}
        terms = [line for loop, body in bodies.items() for line in body.terms_of_task(loops[loop])]
        rooms = rooms + [
            line for loop, body in bodies.items() for line in (body.allocated_terms(loop), *body.allocations())
        ]
        return ["start:", *rooms, *self._entry(), *terms, "  br label %entry", "entry:"]

    def _body(self, prefix: str) -> _Body:
        return _Body(self.plan, self.kernel, self.vectors, self.declarations, prefix, self.loops_of)

    def _entry(self) -> list[str]:
        lines = []

        def field(name: str, number: int) -> None:
            lines.append(f"  %{name}.at = getelementptr i64, ptr %task, i64 {number}")
            lines.append(f"  %{name} = load i64, ptr %{name}.at")

        field("begin", BEGIN)
        field("end", END)
        field("column", COLUMN)
        field("shift", SHIFT)
        field("apart", APART)
        field("strip", FIRST_STRIP)
        tables = {a.table for a in self.kernel.accesses() if a.table is not None and a.column_loop is None}
        tables |= {a.bits for a in self.kernel.accesses() if a.bits is not None}
        tables |= {loop.counts for loop in self.kernel.loops if loop.counts is not None}
        for b in self._buffers():
            lines.append(f"  %b{b}.at = getelementptr ptr, ptr %buffers, i64 {b}")
            lines.append(f"  %b{b} = load ptr, ptr %b{b}.at")
        for b in sorted(tables):
            kind = f"i{8 * self.plan.table(b).itemsize}"
            lines.append(f"  %c{b} = getelementptr {kind}, ptr %b{b}, i64 %column")
        based = sorted({(a.buffer, a.base) for a in self.kernel.accesses() if a.base is not None})
        for base in sorted({base for _, base in based}):
            field(f"base{base}", FIELDS + base)
        for buffer, base in based:
            scalar = self.vectors.scalar
            lines.append(f"  %b{buffer}.{base} = getelementptr {scalar}, ptr %b{buffer}, i64 %base{base}")
        lines.append("  %length = sub i64 %end, %begin")
        lines.append(f"  %most = and i64 %length, -{self.vectors.lanes}")
        lines.append("  %stop = add i64 %begin, %most")
        return lines

    def _buffers(self) -> list[int]:
        return sorted({a.buffer for a in self.kernel.accesses()} | self.kernel.tables())


class _Body(Functions, Rows, Additions, Cursors, Runs):
    """The statements that evaluate one vector of members, or several in pieces: all reads, then all writes.

    prefix : "f" for whole vectors, "t" for the masked rest; it starts the names of all values
    """

    def __init__(self, plan, kernel, vectors, declarations, prefix: str, loops_of: dict[int, frozenset[int]]):
        super().__init__(plan, kernel, vectors, declarations, prefix)
        self.loops_of = loops_of
        self.block = ""
        self.joints = kernel.joints()
        self.joint_of = {id(e): joint for joint in self.joints for e in joint.sums}

    def lines(self, block: str, room: Room) -> list[str]:
        self.block = block
        self._begin()
        self.fill(room, self._end())
        return self.outer

    def in_pieces(self, pieces: list[Piece]) -> list[str]:
        """The statements for several whole vectors, up to member %next, piece by piece."""
        v, memory, block = self.v, self.room(rooms_of(pieces) * AT_ONCE), "body"
        self.declare("i64 @llvm.smin.i64(i64, i64)")
        self.outer += [
            f"  %batch = add i64 %i, {AT_ONCE * v.lanes}",
            "  %next = call i64 @llvm.smin.i64(i64 %batch, i64 %stop)",
        ]
        for number, piece in enumerate(pieces):
            tag = f"piece{number}"
            self.outer += [
                f"  br label %{tag}",
                f"{tag}:",
                f"  %{tag}.i = phi i64 [ %i, %{block} ], [ %{tag}.after, %{tag}.end ]",
            ]
            self.values, self.member, self.block = {}, f"%{tag}.i", tag
            done = self.let(f"lshr i64 {self.let(f'sub i64 {self.member}, %i')}, {v.lanes.bit_length() - 1}")
            at = self.let(f"getelementptr {v.vector}, ptr {memory}, i64 {done}")
            for e, room in piece.needed:
                self.values[self._key(e)] = self.let(f"load {v.vector}, ptr {self._lane(at, room * AT_ONCE, NOWHERE)}")
            if number == 0:
                self._begin()
            for e in piece.expressions:
                self.value(e)
            for e, room in piece.kept:
                self.do(f"store {v.vector} {self.value(e)}, ptr {self._lane(at, room * AT_ONCE, NOWHERE)}")
            if piece is pieces[-1]:
                self._end()
            self.outer += [
                f"  br label %{tag}.end",
                f"{tag}.end:",
                f"  %{tag}.after = add i64 {self.member}, {v.lanes}",
                f"  %{tag}.more = icmp slt i64 %{tag}.after, %next",
                f"  br i1 %{tag}.more, label %{tag}, label %{tag}.done",
                f"{tag}.done:",
            ]
            block = f"{tag}.done"
        return self.outer

    def _begin(self) -> None:
        """What comes first: loops that only write."""
        if self.is_full:
            self.prefetch()
        else:
            self.mask()
        for joint in self.joints:
            if not joint.sums:
                self._loop(joint)

    def _end(self) -> dict[int, str]:
        """What comes last: the writes, but for those in loops and additions. Gives the roots' values."""
        loops = self.kernel.root_loops
        values = {i: self.value(r) for i, r in enumerate(self.kernel.roots) if loops[i] is None}
        for i, value in values.items():
            self._stores(i, value)
        return values

    def _stores(self, root: int, value: str) -> None:
        """The writes of a root, but for additions."""
        for access in (a for a in self.kernel.writes[root] if not a.adds):
            if access.bits is None:
                self.store(access, value)
            else:
                self.write_term(access, value)

    def value(self, e: Expression) -> str:
        if self._key(e) not in self.values:
            for below in bottom_up([e], self._is_done):  # so that deep expressions need no recursion
                if not self._is_done(below):
                    self.values[self._key(below)] = self._compute(below, self.loops_of[id(below)])
        return self.values[self._key(e)]

    def _is_done(self, e: Expression) -> bool:
        """Whether a value is known, or belongs into another loop."""
        loops = self.loops_of[id(e)]
        return self._key(e) in self.values or bool(loops and self.loop not in loops)

    def _key(self, e: Expression) -> tuple[int, int | None]:
        return id(e), self.loop if self.loop in self.loops_of[id(e)] else None

    def _compute(self, e: Expression, loops: frozenset[int]) -> str:
        if e.op == "constant":
            return self.v.number(float(e.value))  # type: ignore[arg-type]
        if e.op == "leaf":
            return self.leaf(int(e.value))  # type: ignore[arg-type]
        if e.op == "sum":
            self._loop(self.joint_of[id(e)])
            return self.values[self._key(e)]
        args = [self.value(a) for a in e.args]
        if e.op == "lane":
            return self.let(f"load {self.v.vector}, ptr {self._lane(args[0], e.value, loops)}", loops)
        if e.op in ROUTINES:
            return self._block(e.op, args, loops)
        if OPS[e.op].libm:
            return self.call(OPS[e.op], args, loops)
        return self.let(self._operation(e.op, args), loops)

    def _block(self, op: str, args: list[str], loops: frozenset[int]) -> str:
        """The address of the lanes of a block operation, computed in place."""
        room, name = self.room(len(args)), f"{op}{len(args)}"
        for k, value in enumerate(args):
            self.do(f"store {self.v.vector} {value}, ptr {self._lane(room, k, loops)}", loops)
        self.declarations.update(dict.fromkeys(ROUTINES[op](name, len(args), self.v)))
        self.do(f"call void @{name}(ptr {room})", loops)
        return room

    def _lane(self, room: str, lane: float | int | None, loops: frozenset[int]) -> str:
        return self.let(f"getelementptr {self.v.vector}, ptr {room}, i64 {lane}", loops)

    def _operation(self, op: str, args: list[str]) -> str:
        v = self.v
        text = OPS[op].llvm.format(*args, t=v.vector, n=v.suffix, f=FLAGS, b=f"<{v.lanes} x i1>")
        if "@llvm." in text:
            name = text[text.index("@llvm.") :].split("(")[0]
            self.declare(f"{v.vector} {name}({', '.join([v.vector] * OPS[op].arity)})")
        return text

    def _loop(self, joint: Joint) -> None:
        """Sums with vector accumulators, and what their loop writes."""
        planned, terms = self.kernel.loops[joint.loop], [e.args[0] for e in joint.sums]
        for e in bottom_up([*terms, *(self.kernel.roots[i] for i in joint.roots)]):
            if not self.loops_of[id(e)]:
                self.value(e)  # before the loop
        self._fresh += 1
        tag = f"{self.prefix}s{self._fresh}"
        bounds = self._strip(planned)
        counts = None if planned.counts is None else self._counts(planned.counts)
        if planned.masks is None:
            self.prefetch_terms(joint.loop, bounds)
        outside, self.inner, self.loop = self.values, [], joint.loop
        self.start, self.term = f"%{tag}.from", f"%{tag}.t"
        totals = [f"%{tag}.a{k}" for k in range(len(terms))]
        if planned.cursors is not None:
            outside = outside | {self._key(terms[0]): self.term_at_position(joint.loop)}
        for copy in range(planned.at_once):
            self.values = dict(outside)
            has_term = None  # where all lanes have
            if planned.masks is not None:
                self.start = self.let(f"add i64 %{tag}.from, {copy}", self._current())
                has_term = self.begin_run(planned.masks, self._current())
                self.prefetch_run(joint.loop)
            elif counts is not None:
                has_term = self._is_below(counts)
            totals = self._accumulated(totals, [self.value(e) for e in terms], has_term)
        for i in joint.roots:
            self._stores(i, self.value(self.kernel.roots[i]))
        inner, self.inner, self.loop, self.values = self.inner, None, None, outside
        self._looped(tag, bounds, STRIP if planned.masks is None else planned.at_once, inner, totals)
        self.values |= {self._key(e): f"%{tag}.a{k}" for k, e in enumerate(joint.sums)}
        self.write_rows(joint.loop)

    def _accumulated(self, totals: list[str], values: list[str], has_term: str | None) -> list[str]:
        """The totals with terms' values added in the lanes that have them."""
        v, loops = self.v, self._current()
        sums = [
            self.let(f"fadd reassoc {FLAGS} {v.vector} {total}, {value}", loops)
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

    def _current(self) -> frozenset[int]:
        return frozenset() if self.loop is None else frozenset({self.loop})

    def _looped(self, tag: str, bounds: tuple[str, str, str], step: int, body: list[str], totals: list[str]) -> None:
        """The loop over the terms of a strip around its body, which makes ``totals`` of ``%tag.a0`` and so on.

        step : from the entry of a term, or run, in the columns to that of the next
        """
        start, end, within = bounds
        before, self.block = self.block, f"{tag}.exit"
        sums = [
            f"  %{tag}.a{k} = phi {self.v.vector} [ zeroinitializer, %{before} ], [ {total}, %{tag}.body ]"
            for k, total in enumerate(totals)
        ]
        self.outer += [
            f"  %{tag}.start = add i64 {start}, {within}",
            f"  br label %{tag}.head",
            f"{tag}.head:",
            f"  %{tag}.t = phi i64 [ 0, %{before} ], [ %{tag}.next, %{tag}.body ]",
            f"  %{tag}.from = phi i64 [ %{tag}.start, %{before} ], [ %{tag}.after, %{tag}.body ]",
            *sums,
            f"  %{tag}.go = icmp slt i64 %{tag}.from, {end}",
            f"  br i1 %{tag}.go, label %{tag}.body, label %{tag}.exit",
            f"{tag}.body:",
            *body,
            f"  %{tag}.next = add i64 %{tag}.t, 1",
            f"  %{tag}.after = add i64 %{tag}.from, {step}",
            f"  br label %{tag}.head",
            f"{tag}.exit:",
        ]

    def _strip(self, loop: PlannedLoop) -> tuple[str, str, str]:
        """Where the terms of the current strip start and end in the columns, and where the first lane's are."""
        starts = loop.starts
        key = ("strip", starts)
        if key not in self.values:
            done = self.let(f"sub i64 {self.member}, %begin")
            first = self.let(f"mul i64 %strip, {loop.split}")
            number = self.let(f"add i64 {first}, {self.let(f'lshr i64 {done}, {loop.width.bit_length() - 1}')}")
            kind, extend = self.index_types[starts]
            at = self.let(f"getelementptr {kind}, ptr %b{starts}, i64 {number}")
            bounds = [
                self.let(f"load {kind}, ptr {self.let(f'getelementptr {kind}, ptr {at}, i64 {k}')}") for k in (0, 1)
            ]
            if kind != "i64":
                bounds = [self.let(f"{extend} {kind} {b} to i64") for b in bounds]
            within = self.let(f"and i64 {done}, {STRIP - 1}") if loop.masks is None else "0"
            self.values[key] = (*bounds, within)  # type: ignore[assignment]
        return self.values[key]  # type: ignore[return-value]

    def _counts(self, table: int) -> str:
        """The numbers of terms of the members, as a vector."""
        lanes = self.v.lanes
        kind, _ = self.index_types[table]
        at = self.let(f"getelementptr {kind}, ptr %c{table}, i64 {self.member}")
        counts = self.let(f"load <{lanes} x {kind}>, ptr {at}, align 1")
        return counts if kind == "i32" else self.let(f"zext <{lanes} x {kind}> {counts} to <{lanes} x i32>")
