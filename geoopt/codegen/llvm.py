"""`Plan` to LLVM IR with explicit vectors: one function per kernel, or for several that are alike, one vector lane per
member.

``void k(ptr buffers, ptr task)`` evaluates the members of a task; ``buffers`` are the addresses of those of the plan's
buffers that the kernel reads and writes. The vector loop runs while whole vectors remain; a masked copy of its body
does the rest. Kernels that differ in what they read and write only, as those of the steps of a loop, have one function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..ops import OPS
from ..plan import Plan
from ..plan.forms import AFTER_SEQUENCES, refuse
from ..plan.loops import ByCursor
from ..plan.planned import PlannedKernel
from ..plan.task import BEGIN, COLUMN, END, FIRST_STRIP
from ..template import Expression, bottom_up, is_exact_difference
from .llvm_body import SEQUENCE, TAIL, WHOLE
from .llvm_fission import AT_ONCE, Piece, pieces_of, rooms_of
from .llvm_math import Functions
from .llvm_memory import slots, starts_in_task
from .llvm_projection import ROUTINES
from .llvm_scatter import Additions, Room
from .llvm_side_by_side import Across, SideBySide, side_by_side
from .llvm_stores import NOWHERE
from .llvm_sums import Sums
from .llvm_vectors import Vectors

NAME = "<kernel>"  # of a function, before it is known which it is; no name in LLVM's text


class Module(NamedTuple):
    """text : of the functions k0, k1, ...;  functions : the number of each kernel's
    buffers : per kernel, those whose addresses its function takes"""

    text: str
    functions: list[int]
    buffers: list[list[int]]


def emit(plan: Plan, vectors: Vectors) -> Module:
    refuse("llvm", plan.forms(), AFTER_SEQUENCES)
    declarations: dict[str, None] = {}
    numbers: dict[str, int] = {}
    emitted = [_function(plan, kernel, vectors, declarations) for kernel in plan.kernels]
    functions = [numbers.setdefault(f.text(NAME), len(numbers)) for f in emitted]
    named = [text.replace(f"@{NAME}", f"@k{number}") for text, number in numbers.items()]
    return Module("\n".join([*named, *declarations, ""]), functions, [f.kernel.buffers() for f in emitted])


def _function(plan: Plan, kernel: PlannedKernel, vectors: Vectors, declarations: dict[str, None]) -> _Function:
    found = side_by_side(kernel, vectors.lanes)
    if found is None:
        return _Function(plan, kernel, vectors, declarations)
    return _FunctionAcross(plan, found, vectors, declarations)


class _Function:
    """One kernel's text."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, vectors: Vectors, declarations: dict[str, None]):
        self.plan, self.kernel, self.vectors, self.declarations = plan, kernel, vectors, declarations
        self.loops_of = kernel.loops_of
        self.room = Room(kernel, vectors)
        self.pieces = pieces_of(kernel)

    def text(self, name: str) -> str:
        body, tail = self._body(WHOLE), self._body(TAIL)
        if self.kernel.sequences is not None:
            whole = self._or_sequence(body)
            tail.find_vector()
        else:
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
        loops = {j.loop: j for j in self.kernel.joints if isinstance(self.kernel.loops[j.loop], ByCursor)}
        if not loops:
            return ["entry:", *self._entry(), *rooms]
        bodies = {loop: self._body(f"p{loop}.") for loop in loops}
        terms = [line for loop, body in bodies.items() for line in body.terms_of_task(loops[loop])]
        rooms = rooms + [
            line for loop, body in bodies.items() for line in (body.allocated_terms(loop), *body.allocations())
        ]
        return ["start:", *rooms, *self._entry(), *terms, "  br label %entry", "entry:"]

    def _or_sequence(self, listed: _Body) -> list[str]:
        """The statements for a vector of members, or for one whose entries follow each other."""
        sequence = self._body(SEQUENCE)
        sequence.vector = listed.find_vector()
        start, listed.outer = listed.outer, []
        return [
            *start,
            f"  %follow = icmp eq i64 {listed.place}, 0",
            "  br i1 %follow, label %sequence, label %listed",
            "sequence:",
            *sequence.lines("sequence", self.room),
            "  br label %wrap",
            "listed:",
            *listed.lines("listed", self.room),
        ]

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
        field("strip", FIRST_STRIP)
        columns, slot_of = self.kernel.columns(None), slots(self.plan, self.kernel)
        taken = [(buffer, slot_of[buffer]) for buffer in self.kernel.buffers()]
        for _, b in taken:
            lines.append(f"  %b{b}.at = getelementptr ptr, ptr %buffers, i64 {b}")
            lines.append(f"  %b{b} = load ptr, ptr %b{b}.at")
        for buffer, b in taken:
            if buffer in columns:
                kind = f"i{8 * self.plan.table(buffer).itemsize}"
                lines.append(f"  %c{b} = getelementptr {kind}, ptr %b{b}, i64 %column")
        starts = starts_in_task(self.kernel)
        for number in sorted({term.field for terms in starts for term in terms}):
            field(f"task{number}", number)
        for b, terms in sorted({(slot_of[a.buffer], a.of_task) for a in self.kernel.addresses()}, key=str):
            start = f"%b{b}"
            for number, term in enumerate(terms, 1):
                name = f"%b{b}{starts[terms]}" + f".{number}" * (number < len(terms))
                lines.append(f"  {name}.by = mul i64 %task{term.field}, {term.times}")
                lines.append(f"  {name} = getelementptr {self.vectors.scalar}, ptr {start}, i64 {name}.by")
                start = name
        lines.append("  %length = sub i64 %end, %begin")
        lines.append(f"  %most = and i64 %length, -{self.vectors.lanes}")
        lines.append("  %stop = add i64 %begin, %most")
        return lines


class _FunctionAcross(_Function):
    """A kernel's text where a vector holds values of one member."""

    def __init__(self, plan: Plan, found: SideBySide, vectors: Vectors, declarations: dict[str, None]):
        super().__init__(plan, found.kernel, replace(vectors, lanes=found.lanes), declarations)
        self.across = found.across

    def text(self, name: str) -> str:
        body = _BodyAcross(self.plan, self.kernel, self.vectors, self.declarations, WHOLE, self.loops_of)
        body.across = self.across
        lines = [
            f"define void @{name}(ptr noalias %buffers, ptr noalias %task) {{",
            *self._start([]),
            "  br label %head",
            "head:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %wrap ]",
            "  %more = icmp slt i64 %i, %end",
            "  br i1 %more, label %body, label %done",
            "body:",
            *body.lines("body", self.room),
            "  br label %wrap",
            "wrap:",
            "  %next = add i64 %i, 1",
            "  br label %head",
            "done:",
            *body.after(),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)


class _Body(Functions, Sums, Additions):
    """The statements that evaluate one vector of members, or several in pieces: all reads, then all writes.

    prefix : `WHOLE`, `SEQUENCE` for a whole vector whose entries follow each other, or `TAIL` for the masked rest
    """

    def __init__(self, plan, kernel, vectors, declarations, prefix: str, loops_of: dict[int, frozenset[int]]):
        super().__init__(plan, kernel, vectors, declarations, prefix, loops_of=loops_of)
        self.joints = kernel.joints
        self.joint_of = {id(e): joint for joint in self.joints for e in joint.sums}

    def lines(self, block: str, room: Room) -> list[str]:
        self.block = block
        self._begin()
        self._end(room)
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
                self.values[self.key(e)] = self.let(f"load {v.vector}, ptr {self._lane(at, room * AT_ONCE, NOWHERE)}")
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
                self.add_up(joint)

    def _end(self, room: Room | None = None) -> None:
        """What comes last: the writes, but for those in loops. room : for what is added"""
        values: dict[int, str] = {}
        for i, (root, loop) in enumerate(zip(self.kernel.roots, self.kernel.root_loops, strict=True)):
            if loop is None:
                values[i] = self.value(root)
                if room is not None:
                    self.fill(room, values)
        for i, value in values.items():
            self.write(i, value)
        if room is not None:
            self.fill_numbers(room)

    def value(self, e: Expression) -> str:
        key = self.key(e)
        if key not in self.values:
            for below in bottom_up([e], self._is_done):  # so that deep expressions need no recursion
                if not self._is_done(below):
                    self.values[self.key(below)] = self._compute(below, self.loops_of[id(below)])
        return self.values[key]

    def _is_done(self, e: Expression) -> bool:
        """Whether a value is known, or belongs into another loop."""
        loops = self.loops_of[id(e)]
        return self.key(e) in self.values or bool(loops and self.loop not in loops)

    def _compute(self, e: Expression, loops: frozenset[int]) -> str:
        if e.op == "constant":
            return self.v.number(float(e.value))  # type: ignore[arg-type]
        if e.op == "leaf":
            return self.leaf(int(e.value))  # type: ignore[arg-type]
        if e.op == "sum":
            self.add_up(self.joint_of[id(e)])
            return self.values[self.key(e)]
        args = [self.value(a) for a in e.args]
        if e.op == "lane":
            return self.let(f"load {self.v.vector}, ptr {self._lane(args[0], e.value, loops)}", loops)
        if e.op in ROUTINES:
            return self._block(e.op, args, loops)
        if OPS[e.op].libm:
            return self.call(OPS[e.op], args, loops)
        return self._operation(e.op, args, "" if is_exact_difference(e) else self.v.flags, loops)

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

    def _operation(self, op: str, args: list[str], flags: str, loops: frozenset[int]) -> str:
        v = self.v
        names = {"t": v.vector, "n": v.suffix, "f": flags, "b": v.mask}
        result = ""
        for line, text in enumerate(OPS[op].llvm.split("\n")):
            text = text.format(*args, **names)
            if "@llvm." in text:
                name = text[text.index("@llvm.") :].split("(")[0]
                self.declare(f"{v.vector} {name}({', '.join([v.vector] * OPS[op].arity)})")
            result = names[f"r{line}"] = self.let(text, loops)
        return result


class _BodyAcross(Across, _Body):
    """The same for one member."""

    def prefetch(self) -> None:
        """Rows are long: hardware follows them."""
