"""Stage `simplify`: rewrite each kernel's template by the families of rules that are switched on.

Takes: `Kernels`.
Gives: `Kernels` with templates of equal meaning and no higher cost; unused leaves are gone.
Ensures: no family raises the cost of a template.
Paper: expression simplification; local decomposition (equal subexpressions are evaluated once).
"""

from __future__ import annotations

from dataclasses import replace

from ..kernel import Kernel, Kernels
from ..options import Options
from ..template import Expression, Template, bottom_up, rewritten
from .constants import fold
from .fractions import share_divisors
from .values import merge_equal_values


def simplify(kernels: Kernels) -> Kernels:
    options = kernels.groups.cut.options
    return replace(kernels, kernels=tuple(_simplified(k, options) for k in kernels.kernels))


def _simplified(kernel: Kernel, options: Options) -> Kernel:
    roots, template = list(kernel.roots), kernel.template
    if "constants" not in options.without:
        roots = rewritten(roots, template, lambda e: fold(template, e))
    roots = merge_equal_values(roots, template, "constants" not in options.without)
    if "fractions" not in options.without:
        roots = share_divisors(roots, template)
    return _without_unused_leaves(replace(kernel, roots=tuple(roots)))


def _without_unused_leaves(kernel: Kernel) -> Kernel:
    used = sorted({int(e.value) for e in bottom_up(list(kernel.roots)) if e.op == "leaf"})  # type: ignore[arg-type]
    renumbered = {old: new for new, old in enumerate(used)}
    template = Template()

    def rename(e: Expression) -> Expression | None:
        return template.make("leaf", (), renumbered[int(e.value)]) if e.op == "leaf" else None  # type: ignore[arg-type]

    roots = tuple(rewritten(list(kernel.roots), template, rename))
    return replace(kernel, template=template, roots=roots, leaves=tuple(kernel.leaves[i] for i in used))
