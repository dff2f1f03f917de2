"""Runs the kernel language on NumPy memory, statement by statement: slow, and what every printer must agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..block_ops import BLOCK_OPS
from ..ops import OPS
from ..plan import Plan
from ..plan.stores import ROW_TERMS
from ..plan.task import BEGIN, KERNEL, field_name
from .expressions import (
    Apply,
    Below,
    Bits,
    Divided,
    Expand,
    Expr,
    Item,
    Lanes,
    Least,
    LeastLane,
    Look,
    Name,
    Number,
    Plus,
    Product,
    Read,
    Remainder,
    Times,
    Turned,
    Whole,
)
from .frames import Members
from .lower import Lowered
from .statements import (
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
    Shared,
    Statement,
    Total,
    View,
    Write,
    WriteRows,
    WriteTerm,
    WriteTerms,
)


class Part(NamedTuple):
    """An array from an entry on, which may lie before its first."""

    array: np.ndarray
    first: int

    def __getitem__(self, at: Any) -> Any:
        return self.array[self.first + at]


Memory = dict[str, np.ndarray | Part]


def part_of(array: np.ndarray | Part, at: int) -> Part:
    return Part(array.array, array.first + at) if isinstance(array, Part) else Part(array, at)


def memory_of(plan: Plan, inputs: Iterable[np.ndarray]) -> Memory:
    """All buffers of a plan, outputs and workspace full of NaN."""
    numbers = [*inputs, *(np.full(n, np.nan) for n in (*plan.output_sizes, plan.workspace_size)), *plan.tables]
    return {f"b{number}": np.ravel(array) for number, array in enumerate(numbers)}


def outputs_of(plan: Plan, memory: Memory) -> list[np.ndarray]:
    first = len(plan.variable_sizes)
    return [np.reshape(memory[f"b{first + n}"], shape) for n, shape in enumerate(plan.output_shapes)]  # type: ignore[call-overload]


def evaluate(plan: Plan, inputs: Iterable[np.ndarray]) -> list[np.ndarray]:
    """The outputs, member by member of all tasks, in running order."""
    memory, machine = memory_of(plan, inputs), Interpreter()
    lowered = [Lowered(kernel, Members(kernel)).statements() for kernel in plan.kernels]
    for task in plan.tasks:
        fields = {field_name(field): int(task[field]) for field in range(BEGIN, len(task))}
        for i in range(fields["begin"], fields["end"]):
            machine.run(lowered[task[KERNEL]], memory, fields | {"i": i})
    return outputs_of(plan, memory)


class Interpreter:
    """functions : that statements call"""

    def __init__(self, functions: Iterable[Function] = ()):
        self.functions = {function.name: function for function in functions}

    def call(self, function: str, arrays: Iterable[np.ndarray | Part], numbers: Iterable[int] = ()) -> None:
        called = self.functions[function]
        memory = dict(zip(called.arrays, arrays, strict=True))
        self.run(called.body, memory, dict(zip(called.numbers, numbers, strict=True)))

    def run(self, statements: Iterable[Statement], memory: Memory, names: dict[str, Any]) -> None:
        """memory : the arrays;  names : the locals that there are, to which others come"""
        for s in statements:
            match s:
                case Let(name, _, e):
                    names[name] = value(e, memory, names)
                case Block(name, op, values):
                    numbers = np.broadcast_arrays(*(value(e, memory, names) for e in values))
                    names[name] = BLOCK_OPS[op](np.stack(numbers, axis=-1).reshape(-1, len(values))).T
                case ReadRow(name, array, at, columns):
                    first = value(at, memory, names)
                    names[name] = [memory[array][first + k] if k in columns else None for k in range(max(columns) + 1)]
                case Total(name):
                    names[name] = 0
                case Add(name, e, mask):
                    added = value(e, memory, names)
                    names[name] = names[name] + (
                        added if mask is None else np.where(value(mask, memory, names), added, 0)
                    )
                case View(name, array, at):
                    memory[name] = part_of(memory[array], value(at, memory, names))
                case Room(name, kind, size):
                    memory[name] = np.zeros(size, np.int64) if kind == INDEX else np.full(size, np.nan)
                case For() | If():
                    self._nested(s, memory, names)
                case Call(function, arrays, numbers):
                    parts = [part_of(memory[array], value(at, memory, names)) for array, at in arrays]
                    self.call(function, parts, [value(e, memory, names) for e in numbers])
                case Prefetch() | Fence() | Shared():
                    pass  # there is one thread, without caches
                case _:
                    write(s, memory, names)

    def _nested(self, s: For | If, memory: Memory, names: dict[str, Any]) -> None:
        if isinstance(s, If):
            self.run(s.yes if value(s.condition, memory, names) else s.no, memory, names)
            return
        for number, at in enumerate(range(value(s.begin, memory, names), value(s.end, memory, names), s.step)):
            names[s.index], names[s.number] = at, number
            self.run(s.body, memory, names)


def write(s: Statement, memory: Memory, names: Mapping[str, Any]) -> None:
    """What changes an array."""
    evaluated = lambda e: value(e, memory, names)  # noqa: E731
    match s:
        case Write(array, at, e, adds, mask):
            _put(memory[array], evaluated(at), evaluated(e), True if mask is None else evaluated(mask), adds)
        case WriteRows(rows):
            for array, at, values in rows:
                for k, e in enumerate(values):
                    _put(memory[array], evaluated(at) + k, evaluated(e), True, 0)
        case WriteTerm(array, at, bits, number, e, mask):
            _put_term(memory[array], evaluated(at), evaluated(bits), evaluated(number), evaluated(e),
                      True if mask is None else evaluated(mask))  # fmt: skip
        case WriteTerms(array, at, bits, tile):
            lanes = len(evaluated(at))
            for number in range(ROW_TERMS):
                term = memory[tile][number * lanes : (number + 1) * lanes]
                _put_term(memory[array], evaluated(at), evaluated(bits), number, term, True)
        case _:
            raise TypeError(f"{type(s).__name__} is no statement of the kernel language")


def _put_term(array: np.ndarray | Part, at: Any, bits: Any, number: int, values: Any, mask: Any) -> None:
    place = number + 1 - (bits >> number & 1)
    _put(array, at + place, values, mask & (bits >> (place + ROW_TERMS) & 1 > 0), 0)


def _put(array: np.ndarray | Part, at: Any, values: Any, mask: Any, adds: int) -> None:
    array, first = part_of(array, 0)
    at, values, mask = np.broadcast_arrays(first + at, values, mask)
    if adds:
        np.add.at(array, at[mask], adds * values[mask])
    else:
        array[at[mask]] = values[mask]


def value(e: Expr, memory: Mapping[str, np.ndarray | Part], names: Mapping[str, Any]) -> Any:
    """Of a vector an array of what its lanes have."""
    evaluated = lambda e: value(e, memory, names)  # noqa: E731
    match e:
        case Name(name):
            return names[name]
        case Number(number):
            return number
        case Below(a, b):
            return evaluated(a) < evaluated(b)
        case Bits(number, width):
            return (evaluated(number) >> np.arange(width) & 1).astype(bool)
        case Look(array, at):
            return np.asarray(memory[array][evaluated(at)]).astype(np.int64)
        case Read(array, at, mask):
            return _read(memory[array], evaluated(at), True if mask is None else evaluated(mask))
        case Expand(array, at, mask):
            has = evaluated(mask)
            return _read(memory[array], evaluated(at) + np.cumsum(has) - has, has)
        case Apply(op, args, _):
            with np.errstate(all="ignore"):
                return OPS[op].numpy(*(np.asarray(evaluated(a)) for a in args))
        case Item(block, number):
            return names[block][number]
        case Turned(values, number):
            count, lanes = len(values), np.stack([evaluated(v) for v in values], axis=1)
            return lanes.reshape(-1, count, count)[:, number].ravel()
    return _whole(e, evaluated)


def _whole(e: Expr, evaluated: Callable[[Expr], Any]) -> Any:
    """Arithmetic of whole numbers."""
    match e:
        case Whole(number):
            return number
        case Lanes(width):
            return np.arange(width)
        case Plus(a, b):
            return evaluated(a) + evaluated(b)
        case Times(number, a):
            return number * evaluated(a)
        case Product(a, b):
            return evaluated(a) * evaluated(b)
        case Divided(a, number):
            return evaluated(a) // number
        case Remainder(a, number):
            return evaluated(a) % number
        case Least(a, b):
            return np.minimum(evaluated(a), evaluated(b))
        case LeastLane(a):
            return int(np.min(evaluated(a)))
    raise TypeError(f"{type(e).__name__} is no expression of the kernel language")


def _read(array: np.ndarray | Part, at: Any, mask: Any) -> Any:
    if mask is True:
        return array[at]
    numbers, first = part_of(array, 0)
    return np.where(mask, numbers[np.where(mask, first + at, 0)], 0.0)
