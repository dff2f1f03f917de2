"""A kernel of a plan in the kernel language."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable
from typing import Protocol

from ..block_ops import BLOCK_OPS
from ..errors import InternalError
from ..integers.segments import STRIP
from ..ops import OPS
from ..plan.address import Address, Linear, Listed, OfTask, Term
from ..plan.loops import ByStrip
from ..plan.planned import Joint, PlannedKernel
from ..plan.stores import Store
from ..plan.task import field_name
from ..template import Expression, bottom_up, is_exact_difference
from .code import (
    CONDITION,
    INDEX,
    NUMBER,
    Add,
    Apply,
    Block,
    Divided,
    Expr,
    For,
    Lane,
    Let,
    Look,
    Name,
    Number,
    Read,
    Remainder,
    Shared,
    Statement,
    Times,
    Total,
    Whole,
    Write,
    plus,
    times,
)


class Frame(Protocol):
    """What a target does around a member."""

    def member(self) -> Expr:
        """The entry of the columns that tells of the member ``i``."""
        ...

    def task(self, field: int) -> Expr:
        """What the member's task has in a field."""
        ...

    def terms(self, loop: int) -> tuple[list[Statement], Expr, Expr, int]:
        """Of a loop's columns, the entry of the member's first term, that which its terms end before, and how far they
        are apart; and statements that come before."""
        ...

    def array(self, buffer: int) -> tuple[str, Expr]:
        """Where a root is written: the array of a buffer, and what is added to its entries."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether several threads add up the terms of a member."""
        ...


class Members:
    """The frame of the members of a task, one after the other. Locals: those that `field_name` gives."""

    is_shared = False

    def __init__(self, kernel: PlannedKernel):
        self.kernel = kernel

    def member(self) -> Expr:
        return plus(Name("i"), Name("column"))

    def task(self, field: int) -> Expr:
        return Name(field_name(field))

    def terms(self, loop: int) -> tuple[list[Statement], Expr, Expr, int]:
        planned = self.kernel.loops[loop]
        if not isinstance(planned, ByStrip):
            raise InternalError("lower", f"there is no code for a loop {type(planned).__name__}")
        done, strip = plus(Name("i"), Times(-1, Name("begin"))), Name(f"strip{loop}")
        begin, end = Name(f"begin{loop}"), Name(f"end{loop}")
        first = plus(Look(f"b{planned.starts}", strip), Remainder(done, STRIP))
        last: Expr = Look(f"b{planned.starts}", plus(strip, Whole(1)))
        if planned.counts is not None:
            last = plus(begin, times(STRIP, Look(f"b{planned.counts}", self.member())))
        before: list[Statement] = [
            Let(strip.name, INDEX, plus(Name("strip"), Divided(done, STRIP))),
            Let(begin.name, INDEX, first),
            Let(end.name, INDEX, last),
        ]
        return before, begin, end, STRIP

    def array(self, buffer: int) -> tuple[str, Expr]:
        return f"b{buffer}", Whole(0)


class Lowered:
    """What a kernel does for its member ``i``.

    names : by the identity of an expression, or by a column, what stands for its value; the innermost loop's first
    """

    def __init__(self, kernel: PlannedKernel, frame: Frame):
        if kernel.sequences is not None:
            raise InternalError("lower", "there is no code for columns that do not list all members: see `relist`")
        self.kernel, self.frame = kernel, frame
        self._begun: set[int] = set()  # loops of which it is known where terms begin and end
        self.joint_of = {id(e): joint for joint in kernel.joints for e in joint.sums}
        self.names: ChainMap[Hashable, Expr] = ChainMap()
        self._statements: list[Statement] = []
        self._fresh = 0

    def statements(self) -> tuple[Statement, ...]:
        for e in bottom_up(list(self.kernel.roots)):
            if not self.kernel.loops_of[id(e)] and id(e) not in self.names:
                self._define(e)
        for joint in self.kernel.joints:
            if not joint.sums:
                self._loop(joint)
        if self.frame.is_shared:
            self._statements.append(Shared(()))
        self._write([i for i, loop in enumerate(self.kernel.root_loops) if loop is None])
        return tuple(self._statements)

    def _let(self, key: Hashable, name: str, kind: str, value: Expr) -> Expr:
        self._statements.append(Let(name, kind, value))
        self.names[key] = Name(name)
        return self.names[key]

    def _new(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}{self._fresh - 1}"

    def _define(self, e: Expression) -> None:
        """Give an expression a name; what it is made of has one."""
        if e.op == "constant":
            self.names[id(e)] = Number(float(e.value))  # type: ignore[arg-type]
        elif e.op == "leaf":
            address = self.kernel.reads[int(e.value)]  # type: ignore[arg-type]
            self._let(id(e), f"x{e.value}", NUMBER, Read(f"b{address.buffer}", self._entry(address)))
        elif e.op == "sum":
            self._loop(self.joint_of[id(e)])
        elif e.op == "lane":
            block = self.names[id(e.args[0])]
            assert isinstance(block, Name)
            self.names[id(e)] = Lane(block.name, int(e.value))  # type: ignore[arg-type]
        else:
            args = tuple(self.names[id(a)] for a in e.args)
            if e.op in BLOCK_OPS:
                name = self._new("w")
                self._statements.append(Block(name, e.op, args))
                self.names[id(e)] = Name(name)
            else:
                kind = CONDITION if OPS[e.op].gives_bool else NUMBER
                self._let(id(e), self._new("r"), kind, Apply(e.op, args, is_exact_difference(e)))

    def _loop(self, joint: Joint) -> None:
        """Sums of some expressions, and what their loop writes."""
        loop = joint.loop
        before, begin, end, apart = self.frame.terms(loop)
        if loop not in self._begun:
            self._begun.add(loop)
            self._statements += before
        roots = [self.kernel.roots[i] for i in joint.roots]
        terms = [total.args[0] for total in joint.sums]
        for e in bottom_up([*terms, *roots]):
            if not self.kernel.loops_of[id(e)] and id(e) not in self.names:
                self._define(e)
        totals = [self._new("s") for _ in joint.sums]
        self._statements += map(Total, totals)
        outside, self._statements, self.names = self._statements, [], self.names.new_child()
        for e in bottom_up([*terms, *roots]):
            if loop in self.kernel.loops_of[id(e)]:
                self._define(e)
        self._write(joint.roots)
        self._statements += [Add(s, self.names[id(term)]) for s, term in zip(totals, terms, strict=True)]
        outside.append(For(f"t{loop}", begin, end, apart, tuple(self._statements)))
        self._statements, self.names = outside, self.names.parents
        self.names.update({id(total): Name(s) for total, s in zip(joint.sums, totals, strict=True)})
        if totals and self.frame.is_shared:
            self._statements.append(Shared(tuple(totals)))

    # -- memory ---------------------------------------------------------------------------------------

    def _write(self, roots: Iterable[int]) -> None:
        """Some roots, once per member or once per term of the loop around."""
        for i in roots:
            for store in self.kernel.writes[i]:
                if type(store) is not Store:
                    raise InternalError("lower", f"there is no code for the store {store}")
                array, first = self.frame.array(store.buffer)
                at = plus(self._entry(store.address), first)
                self._statements.append(Write(array, at, self.names[id(self.kernel.roots[i])], store.adds))

    def _entry(self, address: Address) -> Expr:
        entry: Expr = Whole(0)
        for term in address.terms:
            entry = plus(entry, self._term(term, address))
        return plus(entry, Whole(address.offset))

    def _term(self, term: Term, address: Address) -> Expr:
        """What a term adds; what a column has is named once."""
        loop = address.loop
        match term:
            case Linear(number):
                return times(number, Name("i" if loop is None else f"t{loop}"))
            case Listed(table, number):
                key = "entry", table, loop
                if key not in self.names:
                    at = self.frame.member() if loop is None else Name(f"t{loop}")
                    self._let(key, f"p{table}" if loop is None else f"p{table}_{loop}", INDEX, Look(f"b{table}", at))
                return times(number, self.names[key])
            case OfTask(field, number):
                return times(number, self.frame.task(field))
        raise InternalError("lower", f"there is no code for {type(term).__name__} in the address {address}")
