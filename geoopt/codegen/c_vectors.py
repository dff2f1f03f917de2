"""The kernel language with vectors as C with the vector types of GCC and Clang: `LANES` members at a time, however many
the compiler is told that a vector holds. Entries of lanes are arrays, numbers of lanes are vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..ops import OPS
from ..plan import Plan
from ..plan.planned import PlannedKernel
from ..plan.stores import WRITES
from .c_text import CText
from .expressions import (
    Apply,
    Below,
    Expr,
    Item,
    Lanes,
    Least,
    LeastLane,
    Name,
    Number,
    Product,
    Read,
    entry,
    width,
    without_lanes,
)
from .lower import Lowered
from .numbers import TYPES
from .simd.arrays import TASK, Arrays
from .simd.fission import in_pieces, pieces_of, room
from .simd.frames import OfMembers
from .simd.outlines import outline
from .statements import CONDITION, COUNT, INDEX, Add, Block, For, Let, Room, Statement, Total, View, Write
from .vectors import Vectors

WIDTH = 8  # lanes in the kernel language; the text has LANES instead, which divide what several vectors hold
# operations on whole vectors; operations that are not listed are done lane by lane
OPERATORS = {
    **{"add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})", "divide": "({0} / {1})"},
    **{"less": "({0} < {1})", "less_equal": "({0} <= {1})", "greater": "({0} > {1})", "equal": "({0} == {1})"},
    **{"greater_equal": "({0} >= {1})", "not_equal": "({0} != {1})", "negative": "(-{0})"},
    **{
        "logical_and": "({0} & {1})",
        "logical_or": "({0} | {1})",
        "logical_not": "(~{0})",
        "logical_xor": "({0} ^ {1})",
    },
    **{"where": "chosen({0}, {1}, {2})", "absolute": "absolute({0})", "copysign": "with_sign({0}, {1})"},
    **{"maximum": "greatest({0}, {1})", "minimum": "smallest({0}, {1})"},
}


class VectorText(CText):
    """functions : by name, the text of the functions that operations call"""

    def __init__(self, dtype: np.dtype):
        super().__init__(dtype, TYPES[dtype.name], "int64_t")
        self.functions: dict[str, str] = {}
        self._kinds: dict[str, str] = {}  # by array, the type of its entries, and whether it is written to
        self._entries: set[str] = set()  # arrays with an entry for each lane
        self._known: dict[Expr, str] = {}  # conditions that have names in the current loop

    def function(self, name: str, of: str, plan: Plan, kernel: PlannedKernel, types: dict[str, str]) -> str:
        """Evaluates the whole vectors of a task's members, and gives the first member that is left. Takes the arrays of
        numbers in the order of their buffers, as other functions do.

        of : the type of what holds the tables;  types : of tables, as the plan numbers them
        """
        seen, vectors = outline(plan, kernel, self.dtype, is_split=False), Vectors(WIDTH, self.dtype, prefetches=False)
        written = {store.buffer for store in kernel.stores()}
        slots = {buffer: slot for slot, (buffer, _) in enumerate(seen.places)}
        own = {b: slot for b, slot in sorted(slots.items()) if b <= plan.workspace}
        tables = {b: slot for b, slot in slots.items() if b > plan.workspace}
        self._kinds = {f"b{slot}": f"{'' if b in written else 'const '}{self.scalar}" for b, slot in own.items()}
        self._kinds |= {f"b{slot}": f"const {types[f'b{b}']}" for b, slot in tables.items()} | {TASK: "const int64_t"}
        lines = list(self.lines(_loop(Lowered(seen.kernel, OfMembers(seen, vectors)).statements()), "  "))
        before = [f"const {types[f'b{b}']} *const b{slot} = tables->b{b};" for b, slot in tables.items()]
        before += self.lines(Arrays(seen).views())
        given = [f"{self._kinds[f'b{slot}']} *restrict b{slot}" for slot in own.values()]
        return "\n".join([
            f"static int64_t {name}({', '.join([f'const {of} *tables', *given, f'const int64_t *{TASK}'])}) {{",
            "  (void)tables;",
            *(f"  {line}" for line in _used(before, lines)),
            "  const int64_t stop = end - (end - begin) % LANES;",
            *lines,
            "  return stop;",
            "}",
            "",
        ])  # fmt: skip

    # -- statements -----------------------------------------------------------------------------------

    def statement(self, s: Statement) -> Iterator[str]:
        match s:
            case Let():
                yield from self._let(s)
            case View(name, array, at):
                kind = self._kinds[name] = self._kinds[array]
                yield f"{kind} *const {name} = {array} + ({self.text(at)});"
            case Room(name, _, size):
                yield f"{self.scalar} {name}[{size}];"
            case Total(name, kind):
                yield f"int64_t {name} = 0;" if kind == INDEX else f"numbers {name} = all(0);"
            case Add(name, value, None):
                yield f"{name} += {self.vector(value)};"
            case Add(name, value, mask) if mask is not None:
                if mask not in self._known:
                    self._known[mask] = f"has_term{len(self._known)}"
                    yield f"const mask {self._known[mask]} = {self.vector(mask)};"
                yield f"{name} += (numbers)((mask){self.vector(value)} & {self._known[mask]});"
            case For():
                yield from self._for(s)
            case Write(array, at, value, adds):
                yield from self._write(array, at, self.vector(value), adds)
            case Block():
                yield from self._block(s)
            case _:
                raise self.refusal("statement", s)

    def _let(self, s: Let) -> Iterator[str]:
        if s.kind == COUNT:
            yield f"mask {s.name} = {{0}};"
            yield f"EACH {s.name}[l] = {self.text(s.value)};"
        elif s.kind != INDEX:
            yield f"const {'mask' if s.kind == CONDITION else 'numbers'} {s.name} = {self.vector(s.value)};"
        elif width(s.value):
            self._entries.add(s.name)
            yield f"int64_t {s.name}[LANES];"
            yield f"EACH {s.name}[l] = {self.text(s.value)};"
        else:
            yield f"const int64_t {s.name} = {self.text(s.value)};"

    def _for(self, s: For) -> Iterator[str]:
        by = "LANES" if s.index == "i" else s.step
        first, then = (f", {s.number} = 0", f", ++{s.number}") if s.number else ("", "")
        first, then = f"{self.text(s.begin)}{first}", f"{by}{then}"
        yield f"for (int64_t {s.index} = {first}; {s.index} < {self.text(s.end)}; {s.index} += {then}) {{"
        self._known = {}
        yield from self.lines(s.body, "  ")
        self._known = {}
        yield "}"

    def _block(self, s: Block) -> Iterator[str]:
        """An operation on the numbers of each lane, one lane after the other."""
        count = len(s.values)
        self.routines[s.op, count] = None
        yield f"numbers {s.name}[{s.room}] = {{{', '.join(map(self.vector, s.values))}}};"
        yield "EACH {"
        yield f"  {self.scalar} of_lane[{s.room}];"
        yield f"  for (int k = 0; k < {count}; ++k) of_lane[k] = {s.name}[k][l];"
        yield f"  {s.op}{count}(of_lane);"
        yield f"  for (int k = 0; k < {s.room}; ++k) {s.name}[k][l] = of_lane[k];"
        yield "}"

    def _write(self, array: str, at: Expr, value: str, adds: int) -> Iterator[str]:
        if entry(at).is_contiguous and not adds:
            yield f"*(unaligned *)({array} + {self.text(without_lanes(at))}) = {value};"
        elif value.isidentifier():
            yield f"EACH {array}[{self.text(at)}] {WRITES[adds]} {value}[l];"
        else:
            yield f"{{ const numbers value = {value}; EACH {array}[{self.text(at)}] {WRITES[adds]} value[l]; }}"

    # -- whole numbers --------------------------------------------------------------------------------

    def text(self, e: Expr) -> str:
        match e:
            case Name(name) if name in self._entries:
                return f"{name}[l]"
            case Lanes():
                return "l"
            case LeastLane(Name(name)):
                return f"least({name})"
            case Product(a, b):
                return f"({self.text(a)}) * ({self.text(b)})"
            case Least(a, b):
                x, y = self.text(a), self.text(b)
                return f"({x} < {y} ? {x} : {y})"
        return super().text(e)

    # -- numbers --------------------------------------------------------------------------------------

    def vector(self, e: Expr) -> str:
        match e:
            case Name(name):
                return name
            case Number(value):
                return f"all({self.number(value)})"
            case Item(block, number):
                return f"{block}[{number}]"
            case Read(array, at, None):
                found = entry(at)
                if not found.is_vector:
                    return f"all({array}[{self.text(at)}])"
                if found.is_contiguous:
                    return f"*(const unaligned *)({array} + {self.text(without_lanes(at))})"
                return self._gathered(array, at)
            case Below(a, b):
                return f"below({self.text(a)}, {self.text(b)})"
            case Apply(op, args):
                return self._applied(op, [self.vector(a) for a in args])
        raise self.refusal("expression", e)

    def _gathered(self, array: str, at: Expr) -> str:
        return f"({{ numbers found = {{0}}; EACH found[l] = {array}[{self.text(at)}]; found; }})"

    def _applied(self, op: str, args: list[str]) -> str:
        if op in OPERATORS:
            return OPERATORS[op].format(*args)
        row = OPS[op]
        name = f"each_{op}"
        are_masks = [row.takes_bool and (row.gives_bool or k == 0) for k in range(row.arity)]
        kinds = ["mask" if is_mask else "numbers" for is_mask in are_masks]
        given = ", ".join(f"const {kind} x{k}" for k, kind in enumerate(kinds))
        scalar = row.c.format(*(f"x{k}[l]" for k in range(row.arity)))
        result = "mask" if row.gives_bool else "numbers"
        value = f"-(bool)({scalar})" if row.gives_bool else scalar
        self.functions[name] = (
            f"static inline {result} {name}({given}) {{\n"
            f"  {result} found = {{0}};\n  EACH found[l] = {value};\n  return found;\n}}\n"
        )
        return f"{name}({', '.join(args)})"


def _loop(body: tuple[Statement, ...]) -> list[Statement]:
    """Over all whole vectors, of which several go through a piece of a long body before the next piece does."""
    pieces = pieces_of(body)
    if not pieces:
        return [For("i", Name("begin"), Name("stop"), WIDTH, body)]
    return [room(pieces, WIDTH), in_pieces(pieces, WIDTH)]


def _used(lets: list[str], lines: list[str]) -> list[str]:
    """The locals that the lines use, directly or through other locals."""
    words, found = {"begin", "end", *re.findall(r"\w+", " ".join(lines))}, []
    for let in reversed(lets):
        name, value = let.split(" = ")
        if re.findall(r"\w+", name)[-1] in words:
            words.update(re.findall(r"\w+", value))
            found.append(let)
    return found[::-1]
