"""`Plan` to C: a file of its own, with one function for each kernel and one, `evaluate`, that runs all tasks.

``evaluate(inputs, outputs, workspace)`` takes the arrays of the variables, of the results, and `WORKSPACE` numbers that
it may use; it allocates nothing, and may run in several threads with different arrays. Members are evaluated one by
one, in loops that compilers vectorise. Results are those of the other printers where compilers fuse no products and
sums (``-ffp-contract=off``), up to the order in which terms of long sums are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from ..plan import Plan
from ..plan.forms import RELISTED, refuse
from ..plan.planned import PlannedKernel
from ..plan.task import BEGIN, KERNEL, field_name
from .c_block_routines import ROUTINES
from .c_text import CText
from .code_text import listed_kernels
from .frames import Members
from .lower import Lowered
from .numbers import TYPES, literal

HEAD = """\
#include <stdbool.h>
#include <stdint.h>
#include <tgmath.h>
"""
PER_LINE = 16  # numbers of a table


def emit(plan: Plan, dtype: np.dtype) -> str:
    refuse("c", plan.forms(), RELISTED)
    scalar = TYPES[dtype.name]
    text = CText(dtype, scalar, "int64_t")
    kernels = [_function(plan, number, kernel, text) for number, kernel in enumerate(plan.kernels)]
    routines = [ROUTINES[op](f"{op}{n}", n, dtype, "static") for op, n in text.routines]
    tables = enumerate(plan.typed_tables(dtype), plan.workspace + 1)
    size = f"enum {{ WORKSPACE = {plan.workspace_size} }};\n"
    listed = [table_text(f"b{number}", table, dtype) for number, table in tables]
    return "\n".join([HEAD, size, *listed, *routines, *kernels, _evaluate(plan, scalar)])


def code(plan: Plan) -> str:
    """All kernels in the kernel language."""
    return listed_kernels(Lowered(kernel, Members(kernel)).statements() for kernel in plan.kernels)


def table_type(table: np.ndarray, dtype: np.dtype) -> str:
    """The type of a column, or of varying constants."""
    if table.dtype.kind not in "iu":
        return TYPES[dtype.name]
    return f"{'u' if table.dtype.kind == 'u' else ''}int{8 * table.itemsize}_t"


def table_text(name: str, table: np.ndarray, dtype: np.dtype) -> str:
    numbers = table.tolist() or [0]
    texts = map(str, numbers) if table.dtype.kind in "iu" else (literal(x, dtype) for x in numbers)
    return f"static const {table_type(table, dtype)} {name}[] = {{\n{_rows(texts)}\n}};\n"


def _rows(texts: Iterable[str]) -> str:
    listed = list(texts)
    return "\n".join(f"  {', '.join(listed[at : at + PER_LINE])}," for at in range(0, len(listed), PER_LINE))


def _function(plan: Plan, number: int, kernel: PlannedKernel, text: CText) -> str:
    """Evaluates the members of a task."""
    fields, lines = body(plan, kernel, text)
    given = ", ".join([*parameters(plan, kernel, text.scalar), "const int64_t *task"])
    return "\n".join([f"static void k{number}({given}) {{", *fields, *lines, "}", ""])


def body(plan: Plan, kernel: PlannedKernel, text: CText, begin: str = "begin") -> tuple[list[str], list[str]]:
    """The statements that evaluate a task's members, from one on, and before these what they take from it."""
    lines = list(text.lines(Lowered(kernel, Members(kernel)).statements(), "    "))
    used = set(re.findall(r"\w+", " ".join(lines))) | {begin, "end"}
    fields = {field_name(field): field for field in range(BEGIN, plan.tasks.shape[1])}
    named = [f"{name} = task[{field}]" for name, field in fields.items() if name in used]
    loop = f"  for (int64_t i = {begin}; i < end; ++i) {{"
    return [f"  const int64_t {', '.join(named)};"], [loop, *lines, "  }"]


def buffers_of(plan: Plan, kernel: PlannedKernel) -> dict[int, bool]:
    """The arrays of numbers that a kernel uses, each with whether it writes to it."""
    written = {store.buffer for store in kernel.stores()}
    return {b: b in written for b in sorted({a.buffer for a in kernel.addresses()}) if b <= plan.workspace}


def parameters(plan: Plan, kernel: PlannedKernel, scalar: str) -> Iterator[str]:
    """The arrays of numbers that the function of a kernel takes."""
    for buffer, is_written in buffers_of(plan, kernel).items():
        yield f"{'' if is_written else 'const '}{scalar} *restrict b{buffer}"


def arrays_of(plan: Plan, kernel: PlannedKernel) -> Iterator[str]:
    """The arguments of a call of a kernel's function, in the order of its parameters."""
    variables, outputs = len(plan.variable_sizes), len(plan.output_shapes)
    for buffer in buffers_of(plan, kernel):
        if buffer < variables:
            yield f"inputs[{buffer}]"
        else:
            yield f"outputs[{buffer - variables}]" if buffer < variables + outputs else "workspace"


def _evaluate(plan: Plan, scalar: str) -> str:
    """The entry point: all tasks in running order."""
    rows = [f"{{{', '.join(map(str, row))}}}" for row in plan.tasks.tolist()] or ["{0}"]
    width = plan.tasks.shape[1]
    calls = [
        f"      case {k}: k{k}({', '.join([*arrays_of(plan, kernel), 'task'])}); break;"
        for k, kernel in enumerate(plan.kernels)
    ]
    lines = [
        f"static const int64_t tasks[][{width}] = {{",
        *(f"  {row}," for row in rows),
        "};",
        "",
        f"void evaluate(const {scalar} *const *inputs, {scalar} *const *outputs, {scalar} *workspace) {{",
        "  (void)inputs, (void)outputs, (void)workspace;",
        f"  for (int64_t n = 0; n < {len(plan.tasks)}; ++n) {{",
        "    const int64_t *task = tasks[n];",
        f"    switch (task[{KERNEL}]) {{",
        *calls,
        "    }",
        "  }",
        "}",
        "",
    ]
    return "\n".join(lines)
