"""Runs the kernel language on NumPy memory, number by number: slow, and what every printer must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..block_ops import BLOCK_OPS
from ..ops import OPS
from ..plan import Plan
from ..plan.task import BEGIN, KERNEL, field_name
from .code import (
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
    Plus,
    Read,
    Remainder,
    Shared,
    Statement,
    Times,
    Total,
    Whole,
    Write,
)
from .lower import Lowered, Members


def evaluate(plan: Plan, inputs: Iterable[np.ndarray]) -> list[np.ndarray]:
    """The outputs, member by member of all tasks, in running order."""
    numbers = [*inputs, *(np.full(n, np.nan) for n in (*plan.output_sizes, plan.workspace_size)), *plan.tables]
    memory = {f"b{number}": np.ravel(array) for number, array in enumerate(numbers)}
    lowered = [Lowered(kernel, Members(kernel)).statements() for kernel in plan.kernels]
    for task in plan.tasks:
        fields = {field_name(field): int(task[field]) for field in range(BEGIN, len(task))}
        for i in range(fields["begin"], fields["end"]):
            run(lowered[task[KERNEL]], memory, fields | {"i": i})
    first = len(plan.variable_sizes)
    return [memory[f"b{first + n}"].reshape(shape) for n, shape in enumerate(plan.output_shapes)]


def run(statements: Iterable[Statement], memory: Mapping[str, np.ndarray], names: dict[str, Any]) -> None:
    """Runs statements for one member. memory : the arrays;  names : the locals that there are, to which others come"""
    for s in statements:
        match s:
            case Let(name, _, e):
                names[name] = value(e, memory, names)
            case Block(name, op, values):
                lanes = np.array([value(e, memory, names) for e in values])
                names[name] = BLOCK_OPS[op](lanes[None])[0]
            case Total(name):
                names[name] = 0.0
            case Add(name, e):
                names[name] += value(e, memory, names)
            case For(index, begin, end, step, body):
                for number in range(value(begin, memory, names), value(end, memory, names), step):
                    names[index] = number
                    run(body, memory, names)
            case Write(array, at, e, adds):
                before = memory[array][value(at, memory, names)] if adds else 0.0
                memory[array][value(at, memory, names)] = before + (adds or 1) * value(e, memory, names)
            case Shared():
                pass  # there is one thread
            case _:
                raise TypeError(f"{type(s).__name__} is no statement of the kernel language")


def value(e: Expr, memory: Mapping[str, np.ndarray], names: Mapping[str, Any]) -> Any:
    match e:
        case Name(name):
            return names[name]
        case Whole(number) | Number(number):
            return number
        case Plus(a, b):
            return value(a, memory, names) + value(b, memory, names)
        case Times(number, a):
            return number * value(a, memory, names)
        case Divided(a, number):
            return value(a, memory, names) // number
        case Remainder(a, number):
            return value(a, memory, names) % number
        case Look(array, at):
            return int(memory[array][value(at, memory, names)])
        case Read(array, at):
            return memory[array][value(at, memory, names)]
        case Apply(op, args, _):
            with np.errstate(all="ignore"):
                return OPS[op].numpy(*(np.asarray(value(a, memory, names)) for a in args))
        case Lane(block, number):
            return names[block][number]
    raise TypeError(f"{type(e).__name__} is no expression of the kernel language")
