"""A backend in a hundred lines: kernels as loops of Python. What CONTRIBUTING.md describes, and the test of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from geoopt.block_ops import BLOCK_OPS
from geoopt.codegen.expressions import (
    Apply,
    Divided,
    Expr,
    Item,
    Look,
    Name,
    Number,
    Plus,
    Read,
    Remainder,
    Times,
    Whole,
)
from geoopt.codegen.frames import Members
from geoopt.codegen.lower import Lowered
from geoopt.codegen.statements import Add, Block, For, Let, Statement, Total, Write
from geoopt.errors import InternalError
from geoopt.ops import OPS
from geoopt.pipeline import Device
from geoopt.plan import Plan, Schedule
from geoopt.plan.task import BEGIN, KERNEL, field_name
from geoopt.runtime.host import HostMachine
from geoopt.schedule import schedule
from geoopt.stages import Context


def text(e: Expr) -> str:
    match e:
        case Name(name):
            return name
        case Whole(value) | Number(value):
            return f"float('{value}')" if isinstance(e, Number) else str(value)
        case Plus(a, b):
            return f"{text(a)} + {text(b)}"
        case Times(number, a):
            return f"{number} * ({text(a)})"
        case Divided(a, number):
            return f"({text(a)}) // {number}"
        case Remainder(a, number):
            return f"({text(a)}) % {number}"
        case Look(array, at):
            return f"int({array}[{text(at)}])"
        case Read(array, at, None):
            return f"{array}[{text(at)}]"
        case Apply(op, args, _):
            return f"ops[{op!r}].numpy({', '.join(f'np.asarray({text(a)})' for a in args)})"
        case Item(block, number):
            return f"{block}[{number}]"
    raise InternalError("python", f"there is no text for the expression {type(e).__name__}")


def lines(statements: Iterable[Statement], indent: str) -> Iterator[str]:
    for s in statements:
        match s:
            case Let(name, _, value):
                yield f"{indent}{name} = {text(value)}"
            case Block(name, op, values):
                yield f"{indent}{name} = blocks[{op!r}](np.array([[{', '.join(map(text, values))}]]))[0]"
            case Total(name):
                yield f"{indent}{name} = 0.0"
            case Add(name, value, None):
                yield f"{indent}{name} += {text(value)}"
            case For(index, begin, end, step, body, ""):
                yield f"{indent}for {index} in range({text(begin)}, {text(end)}, {step}):"
                yield from lines(body, indent + "    ") if body else [f"{indent}    pass"]
            case Write(array, at, value, adds, None):
                yield f"{indent}{array}[{text(at)}] {'+=' if adds else '='} {adds or 1} * {text(value)}"
            case _:
                raise InternalError("python", f"there is no text for the statement {type(s).__name__}")


def emit(plan: Plan) -> str:
    """A function for each kernel, which evaluates the members of a task."""
    fields = ", ".join(field_name(field) for field in range(BEGIN, plan.tasks.shape[1]))
    found = []
    for number, kernel in enumerate(plan.kernels):
        head = [f"def k{number}({fields}):", "    for i in range(begin, end):"]
        found += [*head, *lines(Lowered(kernel, Members(kernel)).statements(), "        "), ""]
    return "\n".join(found)


class PythonMachine(HostMachine):
    """Runs the text. Of a `HostMachine` it takes all but how kernels run."""

    device = "python"

    def __init__(self, record: Schedule, context: Context):
        super().__init__(record, context)
        found = emit(record.plan)
        self.sources = {"python": lambda: found}
        self.traits, self.code, self._code = {"lanes": 1}, {"toy": found.encode()}, compile(found, "kernels", "exec")

    def run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        workspace = np.full(self.plan.workspace_size, np.nan, self.dtype)
        arrays = [*inputs, *outputs, workspace, *self.plan.tables]
        names: dict[str, Any] = {f"b{number}": array for number, array in enumerate(arrays)}
        exec(self._code, names | {"np": np, "ops": OPS, "blocks": BLOCK_OPS}, names)
        with np.errstate(all="ignore"):
            for task in self.plan.tasks.tolist():
                names[f"k{task[KERNEL]}"](*task[BEGIN:])


DEVICE = Device((schedule,), PythonMachine, lambda: "Python's own loops", adds=True)
