"""Sparse Jacobians and Hessians across levels of sums.

With z all level variables (the arguments x first, then the sums S), a result is E(z), and every sum is a function of z
too. The Hessian by x is that of the Lagrangian E + Σ adjoint · (sum of terms - S), which is a sum over elements, with
the sums eliminated: H_xx + H_xS D + (H_xS D)ᵀ + Dᵀ H_SS D, where D is the Jacobian of the sums by x.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import UnsupportedError
from ..graph import Node
from ..graph.references import reachable
from ..graph.terms import flat_terms
from ..integers.ids import Ids
from ..integers.patterns import mirrored, multiplications
from ..remedies import NO_MATRIX
from ..sparse import from_triplets, summed, vstack
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..symbolic.array_joining import concatenate, stack
from .elements import Curvatures, Levels, Sum, Triplets, elements
from .inner import Inner
from .reverse import adjoints, dependent, of_segments
from .vertex_blocks import from_elements

# a derivative counts as dense if the elimination of sums takes more products than these, in all and per row
MOST_PRODUCTS = 20_000_000
MOST_PER_ROW = 2000


def sparse_jacobian(function: Inner) -> SparseMatrix:
    """Derivatives of the output, entry by entry, by the entries of the arguments: (outputs, entries).

    Returns a matrix of the graph around the function.
    """
    [output] = function.traced.outputs
    entries = output.reshape((output.size,))
    return _inlined(function, _Second(function).jacobian(entries, np.arange(output.size), output.size))


def sparse_hessian(function: Inner, is_lower: bool, project: str | None = None) -> SparseMatrix:
    """Second derivatives of the output, one number, by the entries of the arguments; or the lower triangle.

    project : the one of `block_ops.PROJECTIONS` that the second derivatives of every element go through, if any
    Returns a matrix of the graph around the function.
    """
    lower = _Second(function).lower(project)
    return lower if is_lower else _mirrored(lower)


class _Second:
    """The levels of a traced function, and the Jacobians of its sums as far as they are known."""

    def __init__(self, function: Inner):
        self.function, self.graph = function, function.graph
        self.result = function.traced.outputs[0]
        active = dependent(self.graph, {n.index for n in function.arguments})
        if any(n.op == "solution" and n.index in active for n in reachable(function.traced)):
            what = "the second derivatives, or the Jacobian, of the solution of a linear system are dense"
            raise UnsupportedError(what, NO_MATRIX)
        self.sums = [n for n in reachable(function.traced) if n.op == "segment_sum" and n.index in active]
        self.levels = Levels((*function.arguments, *self.sums))
        self.entries = sum(n.size for n in function.arguments)
        self._of_sums: dict[int, SparseMatrix] = {}

    # -- Jacobians --------------------------------------------------------------------------------------

    def jacobian(self, terms: Ids, rows: np.ndarray, count: int) -> SparseMatrix:
        """Derivatives by the arguments of ``count`` sums of terms (k,), whose rows are given."""
        found = [t for e in elements(self.graph, self.levels, [Sum(terms)]) for t in e.slopes()]
        all_rows, cols, values = self._joined(found)
        all_rows = rows[all_rows]
        total = self._matrix(all_rows, cols, values, (count, self.entries), cols < self.entries)
        for node, first in self._sums_among(cols):
            inside = (cols >= first) & (cols < first + node.size)
            part = self._matrix(all_rows, cols - first, values, (count, node.size), inside)
            total = total + _product("Jacobian", part, self.of_sum(node), count)
        return total

    def of_sum(self, node: Node) -> SparseMatrix:
        if node.index not in self._of_sums:
            terms, segments = flat_terms(self.graph, node)
            self._of_sums[node.index] = self.jacobian(terms, segments, node.size)
        return self._of_sums[node.index]

    def _sums_among(self, numbers: np.ndarray) -> list[tuple[Node, int]]:
        """The sums that some level variables belong to, and the number of their first."""
        used = np.unique(np.searchsorted(self.levels.starts, np.unique(numbers), side="right") - 1)
        pairs = [(self.levels.nodes[i], int(self.levels.starts[i])) for i in used]
        return [(node, first) for node, first in pairs if node.op == "segment_sum"]

    # -- Hessians ---------------------------------------------------------------------------------------

    def lower(self, project: str | None) -> SparseMatrix:
        """The lower triangle of the Hessian, in the graph around the function."""
        sums = self._lagrangian()
        found = [e.curvatures(sums, project) for e in elements(self.graph, self.levels, sums)]
        lower = self._of_pairs(found)
        return _inlined(self.function, self._of_triplets(found)) if lower is None else lower

    def _of_pairs(self, found: list[Curvatures]) -> SparseMatrix | None:
        """The lower triangle, in the graph around, where all elements of a kind have the same entries, none of them
        by a sum."""
        listed = [c.pairs(self.entries) for c in found if c.columns]
        pairs = [p for p in listed if p is not None]
        if not pairs or len(pairs) < len(listed):
            return None
        # columns are moved to the graph around one by one, and are put together there: no long list of ids is moved
        columns = iter(self.function.inlined([column for _, columns in pairs for column in columns]))
        values = [stack([next(columns) for _ in own], axis=1) for _, own in pairs]
        together = values[0] if len(values) == 1 else concatenate([v.ravel() for v in values])
        return summed(from_elements([kind for kind, _ in pairs], self.entries), together)

    def _of_triplets(self, found: list[Curvatures]) -> SparseMatrix:
        """The lower triangle in general."""
        rows, cols, values = self._joined(t for curvatures in found for t in curvatures.triplets())
        shape = (self.entries, self.entries)
        inside = rows < self.entries
        lower = self._matrix(rows, cols, values, shape, inside)
        if not inside.all():
            lower = lower + _lower(self._eliminated(rows, cols, values))
        return lower

    def _lagrangian(self) -> list[Sum]:
        """The result, and every sum that it depends on with its adjoint."""
        adjoint = adjoints(self.graph, self.result, self.sums)
        found = [Sum(self.result.reshape((1,)))]
        for node in self.sums:
            if node.index in adjoint:
                terms, segments = flat_terms(self.graph, node)
                found.append(Sum(terms, of_segments(adjoint[node.index], segments)))
        return found

    def _eliminated(self, rows: np.ndarray, cols: np.ndarray, values: Symbolic) -> SparseMatrix:
        """What the sums contribute to the Hessian by the arguments."""
        used = self._sums_among(np.concatenate([rows, cols]))
        place = np.full(self.levels.starts[-1], -1, np.int64)  # of a level variable, in the rows of D
        done = 0
        for node, first in used:
            place[first : first + node.size] = done + np.arange(node.size)
            done += node.size
        D = vstack([self.of_sum(node) for node, _ in used])
        of_sum = rows >= self.entries
        H_Sx = self._matrix(place[rows], cols, values, (done, self.entries), of_sum & (cols < self.entries))
        H_SS = _mirrored(self._matrix(place[rows], place[cols], values, (done, done), cols >= self.entries))
        cross = _product("Hessian", D.T, H_Sx, self.entries)
        return cross + cross.T + _product("Hessian", D.T, _product("Hessian", H_SS, D, self.entries), self.entries)

    # -- triplets ---------------------------------------------------------------------------------------

    def _joined(self, triplets: Iterable[Triplets]) -> tuple[np.ndarray, np.ndarray, Symbolic]:
        listed = list(triplets)
        if not listed:
            nothing = np.zeros(0, np.int32)
            return nothing, nothing, as_symbolic(self.graph, np.zeros(0))
        lengths = {len(t.rows) for t in listed}
        if len(lengths) == 1 and lengths != {0}:  # element by element and row by row: nearly as they are sorted
            listed.sort(key=lambda t: (t.rows[0], t.cols[0]))
            rows, cols = np.stack([t.rows for t in listed], axis=1), np.stack([t.cols for t in listed], axis=1)
            return rows.ravel(), cols.ravel(), stack([t.values for t in listed], axis=1).ravel()
        rows, cols = np.concatenate([t.rows for t in listed]), np.concatenate([t.cols for t in listed])
        return rows, cols, concatenate([t.values for t in listed])

    def _matrix(
        self, rows: np.ndarray, cols: np.ndarray, values: Symbolic, shape: tuple, inside: np.ndarray
    ) -> SparseMatrix:
        if not inside.all():
            rows, cols, values = rows[inside], cols[inside], values[np.flatnonzero(inside)]
        return from_triplets(rows, cols, values, shape)


def _inlined(function: Inner, matrix: SparseMatrix) -> SparseMatrix:
    """A matrix of a function's graph as one of the graph around it."""
    [data] = function.inlined([matrix.values])
    return matrix.with_data(data)


def _lower(matrix: SparseMatrix) -> SparseMatrix:
    return matrix.kept(np.flatnonzero(matrix.pattern.rows >= matrix.pattern.indices))


def _mirrored(lower: SparseMatrix) -> SparseMatrix:
    """The symmetric matrix of a lower triangle."""
    pattern, order = mirrored(lower.pattern)
    return SparseMatrix(pattern, lower.values.listed(order))


def _product(what: str, left: SparseMatrix, right: SparseMatrix, rows: int) -> SparseMatrix:
    """left @ right, refused where it is dense. what, rows : of the derivative that it is part of"""
    count = multiplications(left.pattern, right.pattern)
    if count > max(MOST_PRODUCTS, MOST_PER_ROW * rows):
        raise UnsupportedError(
            f"the {what} is dense by nature: it mixes sums over many elements, and would take {count:,} products",
            NO_MATRIX,
        )
    return left @ right
