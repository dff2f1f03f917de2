"""`Plan` to LLVM IR with explicit vectors: one function per kernel, one vector lane per member.

``void k(ptr buffers, ptr task)`` evaluates the members ``task[1] .. task[2]``; ``buffers`` are the addresses of
the plan's buffers. The vector loop runs while whole vectors remain; a masked copy of its body does the rest.

Neighbouring values (``x[p], x[p+1], x[p+2]``) are read as rows and transposed in registers, which is two to
three times faster than gather instructions on the processors measured.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ..ops import OPS
from ..plan import APART, BEGIN, END, LOOPS, SHIFT, STRIP, Access, Plan, PlannedKernel
from ..template import Expression, bottom_up

ROW = 4  # neighbours read together
AHEAD = 128  # members between a prefetch and its use: a memory latency's worth of work


@dataclass(frozen=True)
class Vectors:
    """What the text depends on besides the plan. lanes : members per vector; scalar : LLVM's element type."""

    lanes: int
    dtype: np.dtype
    hardware_gathers: bool = False

    @property
    def scalar(self) -> str:
        return "double" if self.dtype == np.float64 else "float"

    @property
    def suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.dtype.itemsize}"

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.scalar}>"


FLAGS = "contract reassoc arcp nsz afn"  # neither nnan nor ninf: NaN in gives NaN out


def emit(plan: Plan, vectors: Vectors) -> str:
    """The text of a module with the functions ``k0, k1, ...``."""
    declarations: dict[str, None] = {}
    functions = [
        _Function(plan, kernel, vectors, declarations).text(f"k{i}") for i, kernel in enumerate(plan.kernels)
    ]
    return "\n".join([*functions, *declarations, ""])


class _Function:
    """One kernel's text."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, vectors: Vectors, declarations: dict[str, None]):
        self.plan, self.kernel, self.vectors, self.declarations = plan, kernel, vectors, declarations
        tables = enumerate(plan.tables, plan.workspace + 1)
        self.index_types = {i: (f"i{8 * t.itemsize}", "zext" if t.dtype.kind == "u" else "sext") for i, t in tables}
        self.loops_of = _loops_of(list(kernel.roots), kernel.reads)

    def text(self, name: str) -> str:
        lines = [f"define void @{name}(ptr noalias %buffers, ptr noalias %task) {{", "entry:"]
        lines += self._entry()
        lines += [
            "  br label %head",
            "head:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %wrap ]",
            "  %whole = icmp slt i64 %i, %stop",
            "  br i1 %whole, label %body, label %rest",
            "body:",
            *_Body(self, "f", is_full=True).lines("body"),
            "  br label %wrap",
            "wrap:",
            f"  %next = add i64 %i, {self.vectors.lanes}",
            "  br label %head",
            "rest:",
            "  %any = icmp slt i64 %i, %end",
            "  br i1 %any, label %tail, label %done",
            "tail:",
            *_Body(self, "t", is_full=False).lines("tail"),
            "  br label %done",
            "done:",
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _entry(self) -> list[str]:
        lines = []

        def field(name: str, number: int) -> None:
            lines.append(f"  %{name}.at = getelementptr i64, ptr %task, i64 {number}")
            lines.append(f"  %{name} = load i64, ptr %{name}.at")

        field("begin", BEGIN)
        field("end", END)
        field("shift", SHIFT)
        field("apart", APART)
        for loop in range(self.kernel.loops):
            field(f"origin{loop}", LOOPS + 2 * loop)
            field(f"count{loop}", LOOPS + 1 + 2 * loop)
        for b in self._buffers():
            lines.append(f"  %b{b}.at = getelementptr ptr, ptr %buffers, i64 {b}")
            lines.append(f"  %b{b} = load ptr, ptr %b{b}.at")
        based = sorted({(a.buffer, a.base) for a in self.kernel.accesses() if a.base is not None})
        for base in sorted({base for _, base in based}):
            field(f"base{base}", self.plan.first_base + base)
        for buffer, base in based:
            scalar = self.vectors.scalar
            lines.append(f"  %b{buffer}.{base} = getelementptr {scalar}, ptr %b{buffer}, i64 %base{base}")
        lines.append("  %length = sub i64 %end, %begin")
        lines.append(f"  %most = and i64 %length, -{self.vectors.lanes}")
        lines.append("  %stop = add i64 %begin, %most")
        return lines

    def _buffers(self) -> list[int]:
        accesses = self.kernel.accesses()
        return sorted({a.buffer for a in accesses} | {a.table for a in accesses if a.table is not None})


def _loops_of(roots: list[Expression], reads: tuple[Access, ...]) -> dict[int, frozenset[int]]:
    """The loops in which each expression varies, by identity."""
    loops: dict[int, frozenset[int]] = {}
    for e in bottom_up(roots):
        inside: frozenset[int] = frozenset().union(*(loops[id(a)] for a in e.args))
        if e.op == "leaf":
            loop = reads[int(e.value)].loop  # type: ignore[arg-type]
            inside = frozenset() if loop is None else frozenset({loop})
        loops[id(e)] = inside - {int(e.value)} if e.op == "sum" else inside  # type: ignore[arg-type]
    return loops


class _Body:
    """The statements that evaluate one vector of members: all reads, then all writes."""

    def __init__(self, function: _Function, prefix: str, is_full: bool):
        self.f, self.v = function, function.vectors
        self.prefix, self.is_full = prefix, is_full
        self.outer: list[str] = []
        self.inner: list[str] | None = None  # the statements of the loop that is being written
        self.loop: int | None = None
        self.values: dict[tuple, str] = {}
        self.block = ""
        self._fresh = 0
        self.rows = _rows(function.kernel.reads, function.vectors.lanes)

    def lines(self, block: str) -> list[str]:
        self.block = block
        if self.is_full:
            self._prefetch()
        else:
            self._mask()
        values = [self.value(r) for r in self.f.kernel.roots]
        for value, places in zip(values, self.f.kernel.writes, strict=True):
            for access in places:
                self._store(access, value)
        return self.outer

    # -- statements -----------------------------------------------------------------------------------

    def _let(self, expression: str, loops: frozenset[int] = frozenset()) -> str:
        """Append an assignment where it belongs: inside the current loop if it varies there."""
        self._fresh += 1
        name = f"%{self.prefix}{self._fresh}"
        self._lines(loops).append(f"  {name} = {expression}")
        return name

    def _lines(self, loops: frozenset[int]) -> list[str]:
        return self.inner if self.inner is not None and self.loop in loops else self.outer

    def _declare(self, text: str) -> None:
        self.f.declarations[f"declare {text}"] = None

    def _mask(self) -> None:
        """%tm: which lanes of the last vector are members; lane numbers are clamped to the last member."""
        lanes = self.v.lanes
        steps = ", ".join(f"i64 {k}" for k in range(lanes))
        left = self._let("sub i64 %end, %i")
        first = self._let(f"insertelement <{lanes} x i64> poison, i64 {left}, i64 0")
        splat = self._let(f"shufflevector <{lanes} x i64> {first}, <{lanes} x i64> poison, {_zeros(lanes)}")
        self.outer.append(f"  %tm = icmp slt <{lanes} x i64> <{steps}>, {splat}")
        last = self._let(f"sub i64 {left}, 1")
        self._declare("i64 @llvm.smin.i64(i64, i64)")
        self.clamped = [self._let(f"call i64 @llvm.smin.i64(i64 {k}, i64 {last})") for k in range(lanes)]

    def _prefetch(self) -> None:
        """Fetch what later members read of the inputs and write of the outputs, where a column says which.

        Hardware prefetchers do not see such streams. Members have nearby addresses, so a few lanes stand for all.
        What was written shortly before is left out, for the schedule keeps it in cache: intermediates, and outputs
        that the kernel also reads.
        """
        plan, kernel = self.f.plan, self.f.kernel
        inputs = [a for a in kernel.reads if a.buffer < len(plan.variable_sizes)]
        known = {a.buffer for a in kernel.reads} | {plan.workspace}
        outputs = [a for places in kernel.writes for a in places if a.buffer not in known]
        streams = {(a.buffer, a.table, a.base): (a, 0) for a in reversed(inputs) if a.table is not None and a.loop is None}
        streams |= {(a.buffer, a.table, a.base): (a, 1) for a in outputs if a.table is not None}
        wanted = list(streams.values())
        if not wanted:
            return
        self._declare("i64 @llvm.smin.i64(i64, i64)")
        self._declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        ahead = self._let(f"add i64 %i, {AHEAD}")
        last = self._let("sub i64 %end, 1")
        entries: dict[tuple, str] = {}
        for access, is_write in wanted:
            for lane in range(0, self.v.lanes, max(self.v.lanes // (4 if is_write else 2), 1)):
                if (access.table, lane) not in entries:
                    i = self._let(f"add i64 {ahead}, {lane}")
                    i = self._let(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})")
                    entries[access.table, lane] = self._entry(access, i, frozenset())
                at = self._address(access, entries[access.table, lane], access.offset, frozenset())
                self.outer.append(f"  call void @llvm.prefetch.p0(ptr {at}, i32 {is_write}, i32 3, i32 1)")

    # -- values ---------------------------------------------------------------------------------------

    def value(self, e: Expression) -> str:
        loops = self.f.loops_of[id(e)]
        key = (id(e), self.loop if self.loop in loops else None)
        if key not in self.values:
            self.values[key] = self._compute(e, loops)
        return self.values[key]

    def _compute(self, e: Expression, loops: frozenset[int]) -> str:
        if e.op == "constant":
            return f"splat ({self.v.scalar} {_literal(float(e.value), self.v.dtype)})"  # type: ignore[arg-type]
        if e.op == "leaf":
            return self._leaf(int(e.value))  # type: ignore[arg-type]
        if e.op == "sum":
            return self._sum(e)
        args = [self.value(a) for a in e.args]
        return self._let(self._operation(e.op, args), loops)

    def _operation(self, op: str, args: list[str]) -> str:
        v = self.v
        text = OPS[op].llvm.format(*args, t=v.vector, n=v.suffix, f=FLAGS, b=f"<{v.lanes} x i1>")
        if "@llvm." in text:
            name = text[text.index("@llvm.") :].split("(")[0]
            self._declare(f"{v.vector} {name}({', '.join([v.vector] * OPS[op].arity)})")
        return text

    def _sum(self, e: Expression) -> str:
        """A loop over terms with a vector accumulator."""
        loop, v = int(e.value), self.v  # type: ignore[arg-type]
        self._fresh += 1
        tag = f"{self.prefix}s{self._fresh}"
        self.inner, self.loop = [], loop
        self.inner.append(f"  %{tag}.at = mul i64 %{tag}.t, {STRIP}")
        self.inner.append(f"  %{tag}.from = add i64 %{tag}.at, %{tag}.start")
        self.start = f"%{tag}.from"
        term = self.value(e.args[0])
        inner = self.inner
        self.inner, self.loop = None, None
        self.outer += [
            f"  %{tag}.done = sub i64 %i, %begin",
            f"  %{tag}.strips = and i64 %{tag}.done, -{STRIP}",
            f"  %{tag}.before = mul i64 %{tag}.strips, %count{loop}",
            f"  %{tag}.within = and i64 %{tag}.done, {STRIP - 1}",
            f"  %{tag}.strip = add i64 %{tag}.before, %{tag}.within",
            f"  %{tag}.start = add i64 %{tag}.strip, %origin{loop}",
            f"  br label %{tag}.head",
            f"{tag}.head:",
            f"  %{tag}.t = phi i64 [ 0, %{self.block} ], [ %{tag}.next, %{tag}.body ]",
            f"  %{tag} = phi {v.vector} [ zeroinitializer, %{self.block} ], [ %{tag}.sum, %{tag}.body ]",
            f"  %{tag}.go = icmp slt i64 %{tag}.t, %count{loop}",
            f"  br i1 %{tag}.go, label %{tag}.body, label %{tag}.exit",
            f"{tag}.body:",
            *inner,
            f"  %{tag}.sum = fadd {FLAGS} {v.vector} %{tag}, {term}",
            f"  %{tag}.next = add i64 %{tag}.t, 1",
            f"  br label %{tag}.head",
            f"{tag}.exit:",
        ]
        self.block = f"{tag}.exit"
        return f"%{tag}"

    # -- reading --------------------------------------------------------------------------------------

    def _leaf(self, number: int) -> str:
        access = self.f.kernel.reads[number]
        loops = frozenset() if access.loop is None else frozenset({access.loop})
        if access.table is None and access.stride == 0:
            return self._uniform(access)
        if access.table is None and access.stride == 1:
            return self._sequential(access, loops)
        if number in self.rows:
            return self._transposed(number, loops)
        if self.v.hardware_gathers:
            return self._gathered(access, loops)
        return self._picked(access, loops)

    def _uniform(self, access: Access) -> str:
        at = self._let(f"getelementptr {self.v.scalar}, ptr %b{access.buffer}, i64 {access.offset}")
        return self._splat(self._let(f"load {self.v.scalar}, ptr {at}"))

    def _splat(self, scalar: str) -> str:
        v = self.v
        first = self._let(f"insertelement {v.vector} poison, {v.scalar} {scalar}, i64 0")
        return self._let(f"shufflevector {v.vector} {first}, {v.vector} poison, {_zeros(v.lanes)}")

    def _first(self, access: Access, loops: frozenset[int]) -> str:
        """The entry of the first lane, in the loop's columns or among the members."""
        if access.loop is not None:
            return self.start
        return "%i"

    def _sequential(self, access: Access, loops: frozenset[int]) -> str:
        v = self.v
        at = self._address(access, self._first(access, loops), access.offset, loops)
        size = v.dtype.itemsize
        if self.is_full:
            return self._let(f"load {v.vector}, ptr {at}, align {size}", loops)
        self._declare(f"{v.vector} @llvm.masked.load.{v.suffix}.p0(ptr, <{v.lanes} x i1>, {v.vector})")
        call = f"@llvm.masked.load.{v.suffix}.p0(ptr align {size} {at}, <{v.lanes} x i1> %tm, {v.vector} zeroinitializer)"
        return self._let(f"call {v.vector} {call}", loops)

    def _address(self, access: Access, index: str, offset: int, loops: frozenset[int]) -> str:
        """Entry ``index + offset`` of the access's buffer, counted from the task's base where there is one."""
        kind = self.v.scalar
        buffer = f"%b{access.buffer}" + ("" if access.base is None else f".{access.base}")
        at = self._let(f"getelementptr {kind}, ptr {buffer}, i64 {index}", loops)
        return self._let(f"getelementptr {kind}, ptr {at}, i64 {offset}", loops) if offset else at

    def _entries(self, access: Access, loops: frozenset[int]) -> list[str]:
        """Per lane, the entry of the buffer without the access's offset; shared by neighbours."""
        key = ("entries", access.table, access.stride, access.loop)
        if key in self.values:
            return self.values[key]  # type: ignore[return-value]
        first = self._first(access, loops)
        numbers = self.clamped if not self.is_full else [str(k) for k in range(self.v.lanes)]
        entries = []
        for k in numbers:
            i = self._let(f"add i64 {first}, {k}", loops) if k != "0" else first
            entries.append(self._entry(access, i, loops))
        self.values[key] = entries  # type: ignore[assignment]
        return entries

    def _entry(self, access: Access, i: str, loops: frozenset[int]) -> str:
        """The entry of the buffer for member (or term) ``i``."""
        if access.table is None:
            return self._let(f"mul i64 {i}, {access.stride}", loops)
        kind, extend = self.f.index_types[access.table]
        at = self._let(f"getelementptr {kind}, ptr %b{access.table}, i64 {i}", loops)
        entry = self._let(f"load {kind}, ptr {at}", loops)
        return entry if kind == "i64" else self._let(f"{extend} {kind} {entry} to i64", loops)

    def _picked(self, access: Access, loops: frozenset[int]) -> str:
        """One scalar load per lane."""
        v, vector = self.v, "poison"
        for k, entry in enumerate(self._entries(access, loops)):
            at = self._address(access, entry, access.offset, loops)
            scalar = self._let(f"load {v.scalar}, ptr {at}", loops)
            vector = self._let(f"insertelement {v.vector} {vector}, {v.scalar} {scalar}, i64 {k}", loops)
        return vector

    def _pointers(self, access: Access, loops: frozenset[int]) -> str:
        lanes, vector = self.v.lanes, "poison"
        for k, entry in enumerate(self._entries(access, loops)):
            vector = self._let(f"insertelement <{lanes} x i64> {vector}, i64 {entry}, i64 {k}", loops)
        base = self._address(access, "0", access.offset, loops)
        return self._let(f"getelementptr {self.v.scalar}, ptr {base}, <{lanes} x i64> {vector}", loops)

    def _gathered(self, access: Access, loops: frozenset[int]) -> str:
        v = self.v
        name = f"@llvm.masked.gather.{v.suffix}.v{v.lanes}p0"
        self._declare(f"{v.vector} {name}(<{v.lanes} x ptr>, <{v.lanes} x i1>, {v.vector})")
        at = self._pointers(access, loops)
        pointers = f"<{v.lanes} x ptr> align {v.dtype.itemsize} {at}"
        mask = f"<{v.lanes} x i1> splat (i1 true)"
        return self._let(f"call {v.vector} {name}({pointers}, {mask}, {v.vector} poison)", loops)

    def _transposed(self, number: int, loops: frozenset[int]) -> str:
        """Read ROW neighbours per lane as one short vector and transpose; all its columns become values."""
        access, (start, columns) = self.f.kernel.reads[number], self.rows[number]
        key = ("row", access.buffer, access.table, access.base, access.stride, access.loop, start)
        if key not in self.values:
            entries = self._entries(access, loops)
            rows = [self._row(access, e, start, columns, loops) for e in entries]
            self.values[key] = self._columns(rows, columns, loops)  # type: ignore[assignment]
        return self.values[key][access.offset - start]  # type: ignore[return-value]

    def _row(self, access: Access, entry: str, start: int, columns: frozenset[int], loops: frozenset[int]) -> str:
        v, size = self.v, self.v.dtype.itemsize
        at = self._address(access, entry, start, loops)
        kind = f"<{ROW} x {v.scalar}>"
        if len(columns) == ROW:
            return self._let(f"load {kind}, ptr {at}, align {size}", loops)
        name = f"@llvm.masked.load.v{ROW}f{8 * size}.p0"
        mask = ", ".join(f"i1 {'true' if c in columns else 'false'}" for c in range(ROW))
        self._declare(f"{kind} {name}(ptr, <{ROW} x i1>, {kind})")
        return self._let(f"call {kind} {name}(ptr align {size} {at}, <{ROW} x i1> <{mask}>, {kind} poison)", loops)

    def _columns(self, rows: list[str], columns: frozenset[int], loops: frozenset[int]) -> list[str]:
        """Transpose ``lanes`` rows of four within each four lanes, by two rounds of shuffles."""
        quads = self.v.lanes // ROW
        joined = [self._join([rows[4 * q + k] for q in range(quads)], loops) for k in range(ROW)]
        low, high = _interleave(quads, 0), _interleave(quads, 1)
        firsts = {
            c: (self._shuffle(joined[0], joined[1], pattern, loops), self._shuffle(joined[2], joined[3], pattern, loops))
            for c, pattern in ((0, low), (1, high))
            if columns & {c, c + 2}
        }
        result = []
        for c in range(ROW):
            pair = firsts.get(c % 2)
            wanted = c in columns and pair is not None
            result.append(self._shuffle(*pair, _halves(quads, c // 2), loops) if wanted and pair else "poison")
        return result

    def _join(self, parts: list[str], loops: frozenset[int]) -> str:
        width = ROW
        while len(parts) > 1:
            kind = f"<{width} x {self.v.scalar}>"
            mask = ", ".join(f"i32 {k}" for k in range(2 * width))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            joined = [
                self._let(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{mask}>", loops) for a, b in pairs
            ]
            parts, width = joined, 2 * width
        return parts[0]

    def _shuffle(self, a: str, b: str, pattern: list[int], loops: frozenset[int]) -> str:
        v = self.v
        mask = ", ".join(f"i32 {k}" for k in pattern)
        return self._let(f"shufflevector {v.vector} {a}, {v.vector} {b}, <{v.lanes} x i32> <{mask}>", loops)

    # -- writing --------------------------------------------------------------------------------------

    def _store(self, access: Access, value: str) -> None:
        v, size = self.v, self.v.dtype.itemsize
        if access.table is None and access.stride == 1:
            at = self._address(access, self._in_block(access), access.offset, frozenset())
            if self.is_full:
                self.outer.append(f"  store {v.vector} {value}, ptr {at}, align {size}")
                return
            name = f"@llvm.masked.store.{v.suffix}.p0"
            self._declare(f"void {name}({v.vector}, ptr, <{v.lanes} x i1>)")
            self.outer.append(f"  call void {name}({v.vector} {value}, ptr align {size} {at}, <{v.lanes} x i1> %tm)")
            return
        if self.is_full:
            for k, entry in enumerate(self._entries(access, frozenset())):
                scalar = self._let(f"extractelement {v.vector} {value}, i64 {k}")
                at = self._address(access, entry, access.offset, frozenset())
                self.outer.append(f"  store {v.scalar} {scalar}, ptr {at}")
            return
        name = f"@llvm.masked.scatter.{v.suffix}.v{v.lanes}p0"
        self._declare(f"void {name}({v.vector}, <{v.lanes} x ptr>, <{v.lanes} x i1>)")
        pointers = f"<{v.lanes} x ptr> align {size} {self._pointers(access, frozenset())}"
        self.outer.append(f"  call void {name}({v.vector} {value}, {pointers}, <{v.lanes} x i1> %tm)")


    def _in_block(self, access: Access) -> str:
        """The entry of the first member; in the task's block of intermediates for an access with a lane."""
        if access.lane is None:
            return "%i"
        lane = self._let(f"mul i64 %apart, {access.lane}")
        return self._let(f"add i64 {self._let('add i64 %i, %shift')}, {lane}")


def _zeros(lanes: int) -> str:
    return f"<{lanes} x i32> zeroinitializer"


def _literal(value: float, dtype: np.dtype) -> str:
    """LLVM's exact hexadecimal form, in the bits of a double for either type."""
    rounded = float(np.asarray(value).astype(dtype))
    return f"0x{struct.unpack('>Q', struct.pack('>d', rounded))[0]:016X}"


def _interleave(quads: int, odd: int) -> list[int]:
    """(a0 b0 a2 b2) or (a1 b1 a3 b3) in each four lanes of two vectors a, b."""
    n = 4 * quads
    return [k for q in range(quads) for k in (4 * q + odd, n + 4 * q + odd, 4 * q + 2 + odd, n + 4 * q + 2 + odd)]


def _halves(quads: int, upper: int) -> list[int]:
    """(a0 a1 b0 b1) or (a2 a3 b2 b3) in each four lanes."""
    n, u = 4 * quads, 2 * upper
    return [k for q in range(quads) for k in (4 * q + u, 4 * q + u + 1, n + 4 * q + u, n + 4 * q + u + 1)]


def _rows(reads: tuple[Access, ...], lanes: int) -> dict[int, tuple[int, frozenset[int]]]:
    """Leaves that are read with a neighbour: leaf -> (offset of its row, columns used)."""
    if lanes < ROW:
        return {}
    families: dict[tuple, list[int]] = {}
    for number, a in enumerate(reads):
        if a.table is not None or a.stride not in (0, 1):
            families.setdefault((a.buffer, a.table, a.base, a.stride, a.loop), []).append(number)
    rows: dict[int, tuple[int, frozenset[int]]] = {}
    for numbers in families.values():
        numbers.sort(key=lambda n: reads[n].offset)
        while numbers:
            start = reads[numbers[0]].offset
            row = [n for n in numbers if reads[n].offset < start + ROW]
            numbers = numbers[len(row) :]
            columns = frozenset(reads[n].offset - start for n in row)
            if len(columns) > 1:
                rows.update({n: (start, columns) for n in row})
    return rows
