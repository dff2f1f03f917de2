"""Which sums read their terms as they lie: a sparse matrix times a vector reads the values of its rows in order.

One member at a time adds up its terms, which need no column for what lies in order. Vectors of members would gather
both the values and what they are multiplied by, which takes three times as long for rows of six values (AVX2).
"""

from __future__ import annotations

from ..kernels import Kernel
from ..layout import Located
from ..ops import OPS
from ..template import bottom_up
from .times import Locate

MOST = 1  # operations on a member's sums for each of those on its terms: more are work for vectors


def reads_in_order(kernel: Kernel, locate: Locate, workspace: int) -> bool:
    """Whether a kernel, whose members keep their order, has nothing but such sums, and little work besides."""
    terms = sum(loop.segments.total for loop in kernel.loops)
    if not terms or kernel.has_runs or any(loop is not None for loop in kernel.root_loops):
        return False
    if any(place.adds for places in kernel.writes for place in places):
        return False
    read = [(leaf.ids, leaf.loop) for leaf in kernel.leaves if leaf.ids is not None and leaf.loop is not None]
    in_order = {loop for ids, loop in read if lies_in_order(locate(ids), workspace)}
    return in_order.issuperset(range(len(kernel.loops))) and _has_little_work(kernel, terms)


def lies_in_order(located: Located, workspace: int) -> bool:
    """Whether the entries of a column are neighbours in memory whose places stay: `allocate` moves intermediates."""
    return located.buffer < workspace and located.moves is None and located.column.is_contiguous()


def _has_little_work(kernel: Kernel, terms: int) -> bool:
    """Whether members take few operations besides those on their terms, and no function of a library."""
    varies: dict[int, bool] = {}  # in a loop
    on_terms = on_members = 0
    for e in bottom_up(list(kernel.roots)):
        if e.op == "leaf":
            varies[id(e)] = kernel.leaves[int(e.value)].loop is not None  # type: ignore[arg-type]
            continue
        varies[id(e)] = e.op != "sum" and any(varies[id(a)] for a in e.args)
        if e.args and e.op != "sum" and (e.op not in OPS or OPS[e.op].libm):
            return False
        on_terms += e.op == "sum" or (e.op in OPS and varies[id(e)])
        on_members += e.op in OPS and not varies[id(e)]
    return on_members * kernel.size <= MOST * on_terms * terms
