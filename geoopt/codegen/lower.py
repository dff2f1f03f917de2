"""A kernel of a plan in the kernel language, for one member or for a vector of members, as a frame has them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable

from ..block_ops import BLOCK_OPS
from ..errors import InternalError
from ..ops import OPS
from ..plan.address import Address, Along, Linear, Listed, OfTask, Term
from ..plan.planned import Joint, PlannedKernel
from ..plan.stores import RowStore
from ..template import Expression, bottom_up, is_exact_difference
from .expressions import Apply, Expr, Item, Name, Number, Whole, plus, times, width
from .frames import Frame, Stretch
from .statements import CONDITION, INDEX, NUMBER, Add, Block, For, Let, Shared, Statement, Total, Write, WriteTerm


class Lowered:
    """What a kernel does for its member, or members, ``i``.

    names : by the identity of an expression, or by a column, what stands for its value; the innermost loop's first
    """

    def __init__(self, kernel: PlannedKernel, frame: Frame):
        self.kernel, self.frame = kernel, frame
        self._begun: set[int] = set()  # loops of which it is known where terms begin and end
        self.joint_of = {id(e): joint for joint in kernel.joints for e in joint.sums}
        self.names: ChainMap[Hashable, Expr] = ChainMap()
        self._statements: list[Statement] = []
        self._fresh = 0
        self._copy = ""  # what names end with in the copies of a loop's body

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

    def of_term(self, e: Expression) -> tuple[tuple[Statement, ...], Expr]:
        """What an expression is for the terms of a loop, and the statements before it."""
        for below in bottom_up([e]):
            self._define(below)
        return tuple(self._statements), self.names[id(e)]

    def _let(self, key: Hashable, name: str, kind: str, value: Expr) -> Expr:
        self._statements.append(Let(name, kind, value))
        self.names[key] = Name(name, width(value) if kind == INDEX else 0)
        return self.names[key]

    def _new(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}{self._fresh - 1}"

    def _define(self, e: Expression) -> None:
        """Give an expression a name; what it is made of has one."""
        if e.op == "constant":
            self.names[id(e)] = Number(float(e.value))  # type: ignore[arg-type]
        elif e.op == "leaf":
            number = int(e.value)  # type: ignore[arg-type]
            entry = self._entry(self.kernel.reads[number])
            self._let(id(e), f"x{number}{self._copy}", NUMBER, self.frame.read(number, entry))
        elif e.op == "sum":
            self._loop(self.joint_of[id(e)])
        elif e.op == "lane":
            block = self.names[id(e.args[0])]
            assert isinstance(block, Name)
            self.names[id(e)] = Item(block.name, int(e.value))  # type: ignore[arg-type]
        else:
            args = tuple(self.names[id(a)] for a in e.args)
            if e.op in BLOCK_OPS:
                name = self._new("w")
                self._statements.append(Block(name, e.op, args))
                self.names[id(e)] = Name(name)
            else:
                kind = CONDITION if OPS[e.op].gives_bool else NUMBER
                self._let(id(e), self._new("r"), kind, Apply(e.op, args, is_exact_difference(e)))

    # -- loops ----------------------------------------------------------------------------------------

    def _loop(self, joint: Joint) -> None:
        """Sums of some expressions, and what their loop writes."""
        loop = joint.loop
        course = self.frame.course(joint)
        if loop not in self._begun:
            self._begun.add(loop)
            self._statements += course.before
        if not self.frame.has_terms(loop):
            self._define_before(joint)
        totals = [self._new("s") for _ in joint.sums]
        self._statements += map(Total, totals)
        for stretch in course.stretches:
            body = self._body(joint, totals, stretch)
            self._statements.append(For(f"t{loop}", *stretch[:3], body, stretch.number))
        self.names.update({id(total): Name(s) for total, s in zip(joint.sums, totals, strict=True)})
        if totals and self.frame.is_shared:
            self._statements.append(Shared(tuple(totals)))

    def _define_before(self, joint: Joint) -> None:
        """What does not vary in a joint's loop, but is needed there."""
        for e in bottom_up(self._inside(joint), self._is_known):
            if not self.kernel.loops_of[id(e)]:
                self._define(e)
        for store in (s for i in joint.roots for s in self.kernel.writes[i] if isinstance(s, RowStore)):
            self._entry(store.address)
            self._entry_of_column(Listed(store.bits), None)

    def _inside(self, joint: Joint) -> list[Expression]:
        """What is to be known of each term."""
        return [*(total.args[0] for total in joint.sums), *(self.kernel.roots[i] for i in joint.roots)]

    def _is_known(self, e: Expression) -> bool:
        return id(e) in self.names

    def _body(self, joint: Joint, totals: list[str], stretch: Stretch) -> tuple[Statement, ...]:
        """What is done for each term, or for as many as a loop reads at once."""
        outside, self._statements = self._statements, []
        for copy in range(stretch.copies):
            self.names = self.names.new_child()
            self._copy = f"_{copy}" if stretch.copies > 1 else ""
            before, has_term = self.frame.turn(joint.loop, copy, stretch)
            self._statements += before
            if self.frame.has_terms(joint.loop):
                self._let(id(joint.sums[0].args[0]), f"y{joint.loop}", NUMBER, self.frame.term(joint.loop))
            for e in bottom_up(self._inside(joint), self._is_known):
                if joint.loop in self.kernel.loops_of[id(e)]:
                    self._define(e)
            self._write(joint.roots)
            terms = [self.names[id(total.args[0])] for total in joint.sums]
            self._statements += [Add(s, term, has_term) for s, term in zip(totals, terms, strict=True)]
            self.names = self.names.parents
        self._copy = ""
        body, self._statements = tuple(self._statements), outside
        return body

    # -- memory ---------------------------------------------------------------------------------------

    def _write(self, roots: Iterable[int]) -> None:
        """Some roots, once per member or once per term of the loop around."""
        for i in roots:
            value = self.names[id(self.kernel.roots[i])]
            for store in self.kernel.writes[i]:
                array, at = self.frame.place(store.address, self._entry(store.address))
                if isinstance(store, RowStore):
                    bits, number = self._entry_of_column(Listed(store.bits), None), self.frame.number(store.loop)
                    self._statements.append(WriteTerm(array, at, bits, number, value))
                else:
                    streams = self.frame.streams(store.address)
                    self._statements.append(Write(array, at, value, store.adds, streams=streams))

    def _entry(self, address: Address) -> Expr:
        """The entry, but for what the frame adds."""
        entry: Expr = Whole(0)
        for term in address.terms:
            entry = plus(entry, self._term(term, address))
        return plus(entry, Whole(address.offset))

    def _term(self, term: Term, address: Address) -> Expr:
        """What a term adds."""
        match term:
            case Linear(number):
                return times(number, self.frame.index(address.loop))
            case Listed(_, number):
                return times(number, self._entry_of_column(term, address.loop))
            case OfTask():
                return self.frame.of_task(term)
            case Along(number):
                return times(number, self.frame.along(address.loop))
        raise InternalError("lower", f"there is no code for {type(term).__name__} in the address {address}")

    def _entry_of_column(self, column: Listed, loop: int | None) -> Expr:
        """What a column has, which is named once."""
        key = "entry", column.table, loop
        if key not in self.names:
            found = self.frame.look(column.table, loop)
            if isinstance(found, Whole):
                return found
            name = f"p{column.table}" if loop is None else f"p{column.table}_{loop}{self._copy}"
            self._let(key, name, INDEX, found)
        return self.names[key]
