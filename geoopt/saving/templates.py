"""Kernels and their templates as plain data: an expression is a list of its operation, its operands' places among the
expressions before it, and its value."""

from __future__ import annotations

from typing import Any

from ..block_ops import BLOCK_OPS, lanes_of
from ..ops import OPS
from ..plan.address import Address, Along, Linear, Listed, OfTask
from ..plan.loops import ByCursor, ByMember, ByRun, ByStrip, Loop
from ..plan.planned import PlannedChunks, PlannedKernel, PlannedSequences
from ..plan.stores import RowStore, Store
from ..template import Expression, Template
from ..template import written as expressions_of
from .archive import DamagedError
from .records import Reader, written

RECORDS = (
    *(Address, Linear, Listed, OfTask, Along, Store, RowStore),
    *(ByStrip, ByMember, ByRun, ByCursor, PlannedSequences, PlannedChunks),
)
READER = Reader(RECORDS)


def kernel_data(kernel: PlannedKernel) -> dict[str, Any]:
    lines, roots = expressions_of(kernel.roots)
    return {
        "expressions": [[op, list(args), written(value)] for op, args, value, _ in lines],
        "roots": list(roots),
        "reads": written(kernel.reads),
        "writes": written(kernel.writes),
        "loops": written(kernel.loops),
        "level": kernel.level,
        "size": kernel.size,
        "sequences": written(kernel.sequences),
    }


def kernel_of(data: dict[str, Any]) -> PlannedKernel:
    reads = READER.read(data["reads"], tuple[Address, ...])
    loops = READER.read(data["loops"], tuple[Loop, ...])
    template, made = Template(), []
    for op, places, value in data["expressions"]:
        args = tuple(made[READER.read(p, int)] if p >= 0 else _refused(op) for p in places)
        made.append(_expression(template, op, args, value, len(reads), len(loops)))
    roots = tuple(made[p] if p >= 0 else _refused("root") for p in READER.read(data["roots"], tuple[int, ...]))
    writes = READER.read(data["writes"], tuple[tuple[Store, ...], ...])
    level, size = READER.read(data["level"], int), READER.read(data["size"], int)
    sequences = READER.read(data["sequences"], PlannedSequences | None)
    kernel = PlannedKernel(roots, reads, writes, loops, level, size, sequences)
    _check(kernel)
    return kernel


def _expression(template: Template, op: str, args: tuple, value: Any, reads: int, loops: int) -> Expression:
    """One that has operands, and a value, as its operation has."""
    if op == "constant":
        return template.make(op, args, READER.read(value, float)) if not args else _refused(op)
    number = READER.read(value, int | None)
    below = {"leaf": reads, "sum": loops, "lane": lanes_of(args[0].op, len(args[0].args)) if args else 0}.get(op)
    takes = {"leaf": 0, "sum": 1, "lane": 1}.get(op, OPS[op].arity if op in OPS else len(args))
    is_known = op in OPS or op in BLOCK_OPS or below is not None
    is_of_block = op != "lane" or (bool(args) and args[0].op in BLOCK_OPS)
    fits = number is None if below is None else number is not None and 0 <= number < below
    if (
        not is_known
        or not fits
        or not is_of_block
        or len(args) != takes
        or any(a.op in BLOCK_OPS for a in args) > (op == "lane")
    ):
        _refused(op)
    return template.make(op, args, number)


def _refused(op: Any) -> Any:
    raise DamagedError(f"an expression {op!r:.20} has operands or a value that it cannot have")


def _check(kernel: PlannedKernel) -> None:
    """Every root is written, and what varies in a loop is read inside of it only."""
    loops = len(kernel.loops)
    if len(kernel.roots) != len(kernel.writes) or not all(kernel.writes) or min(kernel.level, kernel.size) < 0:
        raise DamagedError("a kernel has values that go nowhere")
    if any(a.loop is not None and not 0 <= a.loop < loops for a in kernel.addresses()):
        raise DamagedError("an address is of a loop that there is not")
    for root, places in zip(kernel.roots, kernel.writes, strict=True):
        if len({store.loop for store in places}) != 1 or kernel.loops_of[id(root)] - {places[0].loop}:
            raise DamagedError("a value is written outside of the loop in which it varies")
