"""Stage `simplify`: rewrite each kernel's template by the families of rules that are switched on.

Takes: `Kernels`.
Gives: `Kernels` with templates of equal meaning and no higher cost; unused leaves are gone, those that do not vary in
a loop are read outside of it, and equal or opposite columns of constants are one leaf.
Ensures: no family raises the cost of a template; without the assumption `finite` every output depends on the
leaves it depended on, so that NaN in gives NaN out.
Paper: expression simplification; local decomposition (equal subexpressions are evaluated once, opposite ones, too).
`rules` is the table of all rules; each family is one file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from ..kernels import Kernel, Kernels
from ..options import FAMILIES, Options
from ..stages import Context
from ..template import Expression, Template, Written, bottom_up, read, rewritten, written
from .constants import fold_constants
from .factors import factorize
from .facts import Facts
from .fractions import reduce_fractions, share_divisors
from .leaves import read_equal_constants_once
from .loops import leave_loops, read_fixed_leaves_once
from .merge import merge_equal_values, merge_opposite_values
from .roots import eliminate_roots
from .sums import collect_terms

Pass = Callable[[list[Expression], Facts], list[Expression]]

ROUNDS = 3
PASSES: dict[str, tuple[Pass, ...]] = {
    "constants": (fold_constants,),
    "local": (merge_equal_values, merge_opposite_values),
    "sums": (collect_terms,),
    "factors": (factorize, leave_loops),
    "fractions": (reduce_fractions, share_divisors),
    "roots": (eliminate_roots,),
}


def simplify(kernels: Kernels, context: Context) -> Kernels:
    options = context.options
    if options.strict:
        options = replace(options, without=options.without | set(FAMILIES))
    return replace(kernels, kernels=tuple(_simplified(k, options) for k in kernels.kernels))


def _simplified(kernel: Kernel, options: Options) -> Kernel:
    kernel = read_fixed_leaves_once(kernel)
    if "constants" in options.without:
        return _without_unused_leaves(_rewritten(kernel, options)[0])
    kernel = read_equal_constants_once(kernel, opposite=False)
    found, cost = _rewritten(kernel, options)
    fewer = read_equal_constants_once(found, opposite=True)
    if fewer is not found:  # most signs are lost in sums, but not all
        other, cost_of_other = _rewritten(fewer, options)
        found = other if cost_of_other <= cost else found
    return _without_unused_leaves(found)


def _rewritten(kernel: Kernel, options: Options) -> tuple[Kernel, tuple[int, int]]:
    """By all families; and what it costs then."""
    loops = tuple((i, leaf.loop) for i, leaf in enumerate(kernel.leaves) if leaf.loop is not None)
    varying = ((i, leaf.constants) for i, leaf in enumerate(kernel.leaves) if leaf.constants is not None)
    nonnegative = frozenset(i for i, values in varying if (values >= 0).all())
    switches = Options(without=options.without, assume=options.assume, strict=options.strict)
    found, cost = _once(written(kernel.roots), loops, nonnegative, switches)
    template = Template()
    return replace(kernel, template=template, roots=tuple(read(template, found))), cost


@functools.lru_cache(256)
def _once(
    before: Written, loops: tuple[tuple[int, int], ...], nonnegative: frozenset[int], options: Options
) -> tuple[Written, tuple[int, int]]:
    """Of kernels that are alike, as those of the steps of a loop, and of programs for other meshes."""
    template = Template()
    roots = read(template, before)
    facts = Facts(template, roots, options.without, options.assume, dict(loops), nonnegative)
    roots = rewrite(roots, facts, options)
    return written(roots), facts.cost(roots)


def rewrite(roots: list[Expression], facts: Facts, options: Options) -> list[Expression]:
    """Run the families in turn until none of them lowers the cost, at most `ROUNDS` times."""
    passes = [p for family in PASSES if family not in options.without for p in PASSES[family]]
    if options.strict:  # x - y and y - x are 0 where x is y, never -0
        passes = [p for p in passes if p is not merge_opposite_values]
    seen: dict[Pass, list[Expression]] = {}  # what each pass has seen last, and could not improve
    best = facts.cost(roots)
    for _ in range(ROUNDS):
        for p in passes:
            if seen.get(p) == roots:
                continue
            found = p(roots, facts)
            now = best if found == roots else facts.cost(found)
            if now < best:
                roots, best = found, now
            else:
                seen[p] = roots
        if len(seen) == len(passes) and all(roots == s for s in seen.values()):
            break
    return roots


def _without_unused_leaves(kernel: Kernel) -> Kernel:
    used = sorted({int(e.value) for e in bottom_up(list(kernel.roots)) if e.op == "leaf"})  # type: ignore[arg-type]
    renumbered = {old: new for new, old in enumerate(used)}
    template = Template()

    def rename(e: Expression) -> Expression | None:
        return template.make("leaf", (), renumbered[int(e.value)]) if e.op == "leaf" else None  # type: ignore[arg-type]

    roots = tuple(rewritten(list(kernel.roots), template, rename))
    return replace(kernel, template=template, roots=roots, leaves=tuple(kernel.leaves[i] for i in used))
