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
from .c_projection import ROUTINES
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
    listed = [_table(f"b{number}", table, dtype) for number, table in tables]
    return "\n".join([HEAD, size, *listed, *routines, *kernels, _evaluate(plan, scalar)])


def code(plan: Plan) -> str:
    """All kernels in the kernel language."""
    return listed_kernels(Lowered(kernel, Members(kernel)).statements() for kernel in plan.kernels)


def _table(name: str, table: np.ndarray, dtype: np.dtype) -> str:
    """A column, or varying constants."""
    is_whole = table.dtype.kind in "iu"
    kind = f"{'u' if table.dtype.kind == 'u' else ''}int{8 * table.itemsize}_t" if is_whole else TYPES[dtype.name]
    numbers = table.tolist() or [0]
    texts = map(str, numbers) if is_whole else (literal(x, dtype) for x in numbers)
    return f"static const {kind} {name}[] = {{\n{_rows(texts)}\n}};\n"


def _rows(texts: Iterable[str]) -> str:
    listed = list(texts)
    return "\n".join(f"  {', '.join(listed[at : at + PER_LINE])}," for at in range(0, len(listed), PER_LINE))


def _function(plan: Plan, number: int, kernel: PlannedKernel, text: CText) -> str:
    """Evaluates the members of a task."""
    lines = list(text.lines(Lowered(kernel, Members(kernel)).statements(), "    "))
    used = set(re.findall(r"\w+", " ".join(lines))) | {"begin", "end"}
    fields = {field_name(field): field for field in range(BEGIN, plan.tasks.shape[1])}
    named = [f"{name} = task[{field}]" for name, field in fields.items() if name in used]
    parameters = ", ".join([*_parameters(plan, kernel, text.scalar), "const int64_t *task"])
    head = f"static void k{number}({parameters}) {{"
    loop = "  for (int64_t i = begin; i < end; ++i) {"
    return "\n".join([head, f"  const int64_t {', '.join(named)};", loop, *lines, "  }", "}", ""])


def _arrays(plan: Plan, kernel: PlannedKernel) -> dict[int, bool]:
    """The arrays of numbers that a kernel uses, each with whether it writes to it."""
    written = {store.buffer for store in kernel.stores()}
    return {b: b in written for b in sorted({a.buffer for a in kernel.addresses()}) if b <= plan.workspace}


def _parameters(plan: Plan, kernel: PlannedKernel, scalar: str) -> Iterator[str]:
    for buffer, is_written in _arrays(plan, kernel).items():
        yield f"{'' if is_written else 'const '}{scalar} *restrict b{buffer}"


def _evaluate(plan: Plan, scalar: str) -> str:
    """The entry point: all tasks in running order."""
    rows = [f"{{{', '.join(map(str, row))}}}" for row in plan.tasks.tolist()] or ["{0}"]
    width = plan.tasks.shape[1]
    variables, outputs = len(plan.variable_sizes), len(plan.output_shapes)

    def array(buffer: int) -> str:
        if buffer < variables:
            return f"inputs[{buffer}]"
        return f"outputs[{buffer - variables}]" if buffer < variables + outputs else "workspace"

    calls = [
        f"      case {k}: k{k}({', '.join([*map(array, _arrays(plan, kernel)), 'task'])}); break;"
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
