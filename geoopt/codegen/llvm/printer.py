"""The kernel language as LLVM IR: one function, whose numbers are vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...errors import InternalError
from ..expressions import Apply, Below, Bits, Expand, Expr, Item, Name, Number, Read, Turned, width
from ..simd import MAIN
from ..simd.uses import added
from ..statements import (
    CONDITION,
    COUNT,
    INDEX,
    Add,
    Block,
    Call,
    Fence,
    For,
    Function,
    If,
    Let,
    Prefetch,
    ReadRow,
    Room,
    Statement,
    Total,
    View,
    Write,
    WriteRows,
    WriteTerm,
    WriteTerms,
)
from ..vectors import Vectors
from .entries import SIGNS, Entries
from .expand import Expansion
from .lines import Lines
from .math import Operations
from .memory import Memory

LOADS = 256  # that LLVM may move past each other: what it does with those of a block takes time by the square of them


class _FunctionLines(Lines):
    """Those of a function; loads are kept apart."""

    def __init__(self) -> None:
        super().__init__()
        self._loads = 0

    def let(self, expression: str) -> str:
        name = super().let(expression)
        if expression.startswith("load "):
            self._loads += 1
            if self._loads % LOADS == 0:
                self.do('call void asm sideeffect "", ""()')
        return name


class Printer:
    """Prints one function of a kernel. types : of arrays of whole numbers, NumPy's name"""

    def __init__(
        self,
        kernel: str,
        function: Function,
        types: Mapping[str, str],
        vectors: Vectors,
        declarations: dict[str, None],
    ):
        self.kernel, self.of, self.types = kernel, function, types
        self.v = replace(vectors, lanes=function.width)
        self.text, self.rooms = _FunctionLines(), list[str]()
        self.entries = Entries(self.text, self.v, declarations)
        self.memory = Memory(self.entries)
        self.operations, self.expansion = Operations(self.memory), Expansion(self.memory)
        self._indices: set[str] = set()  # totals that are entries
        self._last_turned: tuple[tuple[str, ...], list[str]] = (), []

    def function(self) -> str:
        """Its text; that of a kernel takes the addresses of its arrays in an array."""
        arrays, is_main = self.of.arrays, self.of.name == MAIN
        for array in arrays:
            self.entries.arrays[array] = f"%{array}"
            self._has_type(array, array)
        self.entries.names.update({name: f"%{name}" for name in self.of.numbers})
        head = f"define void @{self.kernel}(ptr noalias %buffers, ptr noalias %task) {{"
        if not is_main:
            parameters = [*(f"ptr %{a}" for a in arrays), *(f"i64 %{n}" for n in self.of.numbers)]
            head = f"define internal void @{self.kernel}.{self.of.name}({', '.join(parameters)}) {{"
        for slot, array in enumerate(arrays[:-1] if is_main else ()):
            self.text.do(f"%{array}.at = getelementptr ptr, ptr %buffers, i64 {slot}")
            self.text.do(f"%{array} = load ptr, ptr %{array}.at")
        self.run(self.of.body)
        return "\n".join([head, "entry:", *self.rooms, *self.text.lines, "  ret void", "}"])

    def _has_type(self, array: str, of: str) -> None:
        """An array has the type of another."""
        if of in self.types:
            kind = self.types[of]
            self.entries.kinds[array] = f"i{kind.lstrip('uint')}", SIGNS[kind[0]]
        elif of in self.entries.kinds:
            self.entries.kinds[array] = self.entries.kinds[of]

    # -- statements -----------------------------------------------------------------------------------

    def run(self, statements: Iterable[Statement]) -> None:
        for s in statements:
            match s:
                case Let():
                    self._let(s)
                case View(name, array, at):
                    self._has_type(name, array)
                    self.entries.arrays[name] = self.memory.pointer(array, at)
                case Room(name, kind, size):
                    self.entries.arrays[name] = self._room(size, "i64" if kind == INDEX else self.v.scalar)
                    self._has_type(name, name)
                case Total(name, kind):
                    self._indices |= {name} if kind == INDEX else set()
                    self.entries.names[name] = "0" if kind == INDEX else "zeroinitializer"
                case Add():
                    self._add(s)
                case For():
                    self._for(s)
                case If():
                    self._if(s)
                case Block(name, op, values):
                    self.entries.names[name] = room = self._room(s.room, self.v.vector)
                    self.operations.block(op, [self.number(e) for e in values], room)
                case ReadRow(name):
                    self.entries.names[name] = self.memory.row(s)
                case _:
                    self._effect(s)

    def _effect(self, s: Statement) -> None:
        """What changes memory, or caches."""
        match s:
            case Write():
                self._write(s)
            case WriteRows(rows):
                self.memory.write_rows(rows, [[self.number(e) for e in row.values] for row in rows])
            case WriteTerm(mask=mask) if mask is not None:
                self.memory.write_term(s, self.number(s.value), self.condition(mask))
            case WriteTerms():
                self.memory.write_terms(s)
            case Prefetch(array, at):
                self.memory.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
                # for writes as for reads: instructions that fetch for writing are slower (measured on Intel)
                self.text.do(f"call void @llvm.prefetch.p0(ptr {self.memory.pointer(array, at)}, i32 0, i32 3, i32 1)")
            case Call(function, arrays, numbers):
                pointers = [f"ptr {self.memory.pointer(array, at)}" for array, at in arrays]
                given = ", ".join([*pointers, *(f"i64 {self.entries.one(e)}" for e in numbers)])
                self.text.do(f"call void @{self.kernel}.{function}({given})")
            case Fence():
                self.text.do("fence seq_cst")
            case _:
                raise InternalError("llvm", f"there is no text for the statement {type(s).__name__}")

    def _let(self, s: Let) -> None:
        found: str | list[str]
        if s.kind == INDEX:
            found = self.entries.each(s.value) if width(s.value) else self.entries.one(s.value)
        elif s.kind == COUNT:
            self.entries.counted.add(s.name)
            found = self.entries.counts(s.value)
        elif s.kind == CONDITION:
            found = self.condition(s.value)
        else:
            found = self.number(s.value)
        self.entries.names[s.name] = found

    def _room(self, size: int, kind: str) -> str:
        name = f"%room{len(self.rooms)}"
        self.rooms.append(f"  {name} = alloca [{size} x {kind}], align {self.v.alignment}")
        return name

    def _write(self, s: Write) -> None:
        if s.array in self.entries.kinds:  # entries that are kept
            pointer = self.memory.first(s.array, s.at)
            self.text.do(f"store <{self.v.lanes} x i64> {self.entries.vector(s.value)}, ptr {pointer}, align 8")
        elif s.adds:
            self.memory.add(s, self.number(s.value))
        else:
            self.memory.write(s, self.number(s.value), None if s.mask is None else self.condition(s.mask))

    def _add(self, s: Add) -> None:
        names, v, before = self.entries.names, self.v, self.entries.names[s.name]
        if s.name in self._indices:
            names[s.name] = self.text.let(f"add i64 {before}, {self.entries.one(s.value)}")
            return
        after = self.text.let(f"fadd {v.flags_of_totals} {v.vector} {before}, {self.number(s.value)}")
        if s.mask is not None:
            pair = f"{v.vector} {after}, {v.vector} {before}"
            after = self.text.let(f"select {v.mask} {self.condition(s.mask)}, {pair}")
        names[s.name] = after

    def _for(self, s: For) -> None:
        text, names = self.text, self.entries.names
        begin, end, tag, before = self.entries.one(s.begin), self.entries.one(s.end), text.fresh("l"), text.block
        first = {name: names[name] for name in added(s.body) if name in names}
        varying = {name: f"%{tag}.{name}" for name in first}
        head = f"{tag}.body" if s.is_entered else f"{tag}.head"
        text.do(f"br label %{head}")
        outside, text.lines = text.lines, []
        self.entries.open()
        self.entries.names.update(varying | {s.index: f"%{tag}", s.number: f"%{tag}.number"})
        text.block = f"{tag}.body"
        self.run(s.body)
        last, latch = {name: self.entries.names[name] for name in first}, text.block
        self.entries.close()
        body, text.lines = text.lines, outside
        text.label(head)
        text.do(f"%{tag} = phi i64 [ {begin}, %{before} ], [ %{tag}.next, %{latch} ]")
        if s.number:
            text.do(f"%{tag}.number = phi i64 [ 0, %{before} ], [ %{tag}.counted, %{latch} ]")
        for name in first:
            kind = "i64" if name in self._indices else self.v.vector
            text.do(f"{varying[name]} = phi {kind} [ {first[name]}, %{before} ], [ {last[name]}, %{latch} ]")
        if not s.is_entered:
            text.do(f"%{tag}.go = icmp slt i64 %{tag}, {end}")
            text.branch(f"%{tag}.go", f"{tag}.body", f"{tag}.exit")
            text.label(f"{tag}.body")
        text.lines += body
        if s.number:
            text.do(f"%{tag}.counted = add i64 %{tag}.number, 1")
        text.do(f"%{tag}.next = add i64 %{tag}, {s.step}")
        if s.is_entered:
            text.do(f"%{tag}.go = icmp slt i64 %{tag}.next, {end}")
            text.branch(f"%{tag}.go", f"{tag}.body", f"{tag}.exit")
        else:
            text.do(f"br label %{head}")
        text.label(f"{tag}.exit")
        names.update(last if s.is_entered else varying)

    def _if(self, s: If) -> None:
        text, condition, tag = self.text, self.condition(s.condition), self.text.fresh("if")
        text.branch(condition, f"{tag}.yes", f"{tag}.no" if s.no else f"{tag}.end")
        for label, body in (("yes", s.yes), ("no", s.no)):
            if body:
                text.label(f"{tag}.{label}")
                self.entries.open()
                self.run(body)
                self.entries.close()
                text.do(f"br label %{tag}.end")
        text.label(f"{tag}.end")

    # -- expressions ----------------------------------------------------------------------------------

    def number(self, e: Expr) -> str:
        match e:
            case Name(name):
                return self.entries.names[name]
            case Number(value):
                return self.v.number(value)
            case Apply(op, args, is_exact):
                return self.operations.applied(op, [self.number(a) for a in args], is_exact)
            case Read(array, at, mask):
                return self.memory.read(array, at, None if mask is None else self.condition(mask))
            case Expand(array, at, mask):
                return self.expansion.read(self.memory.pointer(array, at), self.condition(mask))
            case Item():
                return self._item(e)
            case Turned(values, number):
                return self._turned(values)[number]
        raise InternalError("llvm", f"there is no text for the expression {type(e).__name__}")

    def condition(self, e: Expr) -> str:
        match e:
            case Name(name):
                return self.entries.names[name]
            case Below():
                return self.entries.below(e)
            case Bits(number):
                return self.expansion.mask(self.entries.one(number), "i64")
            case Apply():
                return self.number(e)
        raise InternalError("llvm", f"there is no text for the condition {type(e).__name__}")

    def _item(self, e: Item) -> str:
        found, known = self.entries.names[e.block], self.entries.known
        if isinstance(found, list):
            return found[e.number]
        if e not in known:
            known[e] = self.text.let(f"load {self.v.vector}, ptr {self.operations.item(found, e.number)}")
        return known[e]

    def _turned(self, values: tuple[Expr, ...]) -> list[str]:
        texts = tuple(self.number(e) for e in values)
        if self._last_turned[0] != texts:
            self._last_turned = texts, self.memory.shuffles.turned(list(texts))
        return self._last_turned[1]
