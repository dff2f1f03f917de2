"""`view`: what any stage gives, as short stable text; after `harvest` the leaf tables, as the paper draws them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from .codegen import CODE
from .errors import ArgumentError
from .grid import Grid
from .kernels import Kernel, Kernels, Leaf
from .layout import Layout
from .notebooks import Listing
from .options import Options
from .pipeline import chosen, compile, planned
from .plan.relist import relist
from .template import Expression, listing

MEMBERS = 6  # of a kernel that are shown
OCCURRENCES = 16  # leaves of a template of which every occurrence is shown


def view(
    function: Callable,
    *arguments: Any,
    stage: str = "harvest",
    device: str = "cpu",
    options: Options | None = None,
    **keywords: Any,
) -> Listing:
    """The result of one stage of `compile` for a function and its arguments.

    stage : of `pipeline.STAGES` that the device has: up to "group" graphs and their parts, from "harvest" to "share"
        kernels with their leaf tables, from "place" on kernels with their addresses, at "assemble" the device's code;
        or "code", what each member does in the kernel language (see `codegen.statements`), and on the CPU "vectors",
        what vectors of members do: the functions that machine code is made of
    device : as `compile` takes it
    Of a function that solves linear systems, the stages after "phases" give one result for each different program.
    Raises ArgumentError for a stage that the device has not, and what `compile` raises.

    Examples
    --------
    >>> print(geoopt.view(lambda x: np.sqrt(x[1:] * x[:-1]), np.ones(4), stage="trace"))
    n0[4] = variable x
    n1[3] = multiply (n0, n0)
    n2[3] = sqrt (n1)
    out0[3] <- n2
    """
    *before, last, assemble = chosen(device).stages
    context = chosen(device).context(options or Options(), np.dtype(keywords.get("dtype", np.float64)))
    stages = (*before, last, "code", *(["vectors"] if context.vectors else []), assemble)
    if stage not in stages:
        raise ArgumentError(f"view(stage={stage!r}, device={device!r}): choose from {', '.join(stages)}")
    if stage == "assemble":
        return Listing(compile(function, *arguments, device=device, options=options, **keywords).source())
    found: list[str] = []

    def watch(done: str, record: Any) -> None:
        if done == stage:
            found.append(leaf_tables(record) if isinstance(record, Kernels) else str(record))
        elif stage == "code" and done == last:
            is_grid = isinstance(record, Grid)
            found.append(CODE["cuda"](record) if is_grid else CODE["c"](relist(record.plan)))
        elif stage == "vectors" and done == last:
            found.append(CODE["cpu"](record.plan, context.vectors))

    planned(function, *arguments, device=device, options=options, watch=watch, **keywords)
    if len(found) == 1:
        return Listing(found[0])
    return Listing("\n\n".join(f"program {number}\n{text}" for number, text in enumerate(found)))


def leaf_tables(kernels: Kernels) -> str:
    """Every kernel's template and which scalars its leaves are, member by member."""
    parts = []
    for number, kernel in enumerate(kernels.kernels):
        head = f"kernel {number}: level {kernel.level}, {kernel.size} members"
        tables = [_table(kernels.layout, kernel)]
        occurrences = _occurrences(list(kernel.roots))
        if occurrences is not None:
            tables.insert(0, _table_of_occurrences(kernels.layout, kernel, occurrences))
        names = leaf_names(kernel)
        template = listing(list(kernel.roots), lambda leaf, names=names: names[leaf])
        parts.append("\n".join([head, template, *tables]))
    return "\n\n".join(parts)


def leaf_names(kernel: Kernel) -> list[str]:
    """x0, x1, ... for what is read, c0, c1, ... for varying constants."""
    counts = {"x": 0, "c": 0}
    names = []
    for leaf in kernel.leaves:
        letter = "c" if leaf.ids is None else "x"
        names.append(f"{letter}{counts[letter]}")
        counts[letter] += 1
    return names


def _occurrences(roots: list[Expression]) -> list[Expression] | None:
    """Every leaf of the templates as trees, from left to right; None where there are too many."""
    found: list[Expression] = []
    stack = list(reversed(roots))
    while stack:
        e = stack.pop()
        if not e.args:
            found.append(e)
        stack.extend(reversed(e.args))
        if len(found) + len(stack) > OCCURRENCES:
            return None
    return found


def _table_of_occurrences(layout: Layout, kernel: Kernel, occurrences: list[Expression]) -> str:
    """The paper's first table: what stands in every leaf of every member, and below it what becomes of it."""
    names = leaf_names(kernel)
    columns = []
    for i, e in enumerate(occurrences):
        if e.op == "leaf":
            number = int(e.value)  # type: ignore[arg-type]
            columns.append([f"l{i}", *_entries(layout, kernel.leaves[number], kernel), names[number]])
        else:
            columns.append([f"l{i}", *[f"{e.value:g}"] * min(kernel.size, MEMBERS), f"{e.value:g}"])
    return _drawn(columns, kernel, has_footer=True)


def _table(layout: Layout, kernel: Kernel) -> str:
    """The paper's second table: the distinct leaves."""
    names = leaf_names(kernel)
    columns = [[n, *_entries(layout, leaf, kernel)] for n, leaf in zip(names, kernel.leaves, strict=True)]
    return _drawn(columns, kernel, has_footer=False) if columns else ""


def _drawn(columns: list[list[str]], kernel: Kernel, has_footer: bool) -> str:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for column in columns:
        table.add_column(column[0])
    shown = min(kernel.size, MEMBERS)
    for member in range(shown):
        table.add_row(f"member {member}", *(c[1 + member] for c in columns))
    if kernel.size > shown:
        table.add_row("...", *("..." for _ in columns))
    if has_footer:
        table.add_row("", *(c[-1] for c in columns))
    console = Console(file=io.StringIO(), width=max(80, 14 * len(columns) + 20), color_system=None)
    console.print(table)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


def _entries(layout: Layout, leaf: Leaf, kernel: Kernel) -> list[str]:
    """What a leaf is for the first members; of a loop, its first terms."""
    entries = []
    for member in range(min(kernel.size, MEMBERS)):
        if leaf.loop is None:
            at = np.array([member])
        else:
            at = np.arange(*kernel.loops[leaf.loop].segments.offsets(member, member + 1))
        if leaf.ids is None:
            assert leaf.constants is not None
            texts = [f"{v:g}" for v in leaf.constants[at[:MEMBERS]]]
        else:
            texts = [scalar_name(layout, int(i)) for i in leaf.ids[at].to_array()[:MEMBERS]]
        entries.append(" ".join(texts) + (" ..." if len(at) > MEMBERS else ""))
    return entries


def scalar_name(layout: Layout, scalar: int) -> str:
    """``V[3,0]`` for an entry of an argument, ``n7[3]`` for one of an intermediate."""
    home = layout.home_of(scalar)
    position = np.unravel_index(scalar - home.first, home.shape) if home.shape else ()
    return f"{home.name}[{','.join(str(int(p)) for p in position)}]" if position else home.name
