"""Elements: what is summed over a mesh, as small templates with one column of ids per leaf.

Between two levels of sums an expression reads only *level variables*: entries of the arguments, and of sums further
inside. The compiler's own stages find the templates: every sum is taken for a variable, everything else is recomputed.
Derivatives of the templates go back to the graph as columns, one scalar per element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..block_ops import MOST_ROWS
from ..decompose import decompose
from ..errors import UnsupportedError
from ..graph import Graph, Node, Traced
from ..graph.references import reachable
from ..group import group
from ..harvest import harvest
from ..integers.coordinates import Pairs
from ..integers.hashing import content
from ..integers.ids import Ids, id_dtype
from ..kernels import Kernel, Leaf
from ..options import Options
from ..stages import Context
from ..symbolic import Symbolic, symbolic
from ..symbolic.arithmetic import apply, as_symbolic
from ..template import Expression, Template, bottom_up, rewritten
from .chain import known
from .templates import gradient, hessian

# every place once: it is a summand
_IN_PLACE = Context(Options(without=frozenset({"global", "memory"})), np.dtype(np.float64))


@dataclass(frozen=True, eq=False)
class Levels:
    """The level variables of a graph in one numbering: the scalars of some nodes, one node after the other."""

    nodes: tuple[Node, ...]

    @cached_property
    def starts(self) -> np.ndarray:
        return np.cumsum([0, *(n.size for n in self.nodes)])

    def has(self, column: Ids) -> bool:
        """Whether a column reads any level variable."""
        return any(n.first <= column.highest and column.lowest < n.end for n in self.nodes) and bool(
            (self.numbers(column) >= 0).any()
        )

    def numbers(self, column: Ids) -> np.ndarray:
        """The numbers of a column of ids, -1 for those that are no level variables."""
        ids, dtype = column.to_array(), id_dtype(int(self.starts[-1]))
        shifts = [(node, int(start) - node.first) for node, start in zip(self.nodes, self.starts, strict=False)]
        for node, shift in shifts:
            if node.first <= column.lowest and column.highest < node.end:
                return np.add(ids, shift, dtype=dtype)
        found = np.full(len(ids), -1, dtype)
        for node, shift in shifts:
            inside = node.places_in(ids)
            found[inside] = ids[inside] + shift
        return found


@dataclass(frozen=True, eq=False)
class Triplets:
    """Entries of a matrix: rows and columns by number, values of one scalar each."""

    rows: np.ndarray
    cols: np.ndarray
    values: Symbolic


@dataclass(frozen=True, eq=False)
class Curvatures:
    """Second derivatives of elements, by pairs of leaves. numbers : of the level variables that each leaf reads"""

    numbers: dict[int, np.ndarray]
    columns: dict[tuple[int, int], Symbolic]

    def triplets(self) -> Iterator[Triplets]:
        """The lower triangle."""
        for (k, leaf), values in self.columns.items():
            one, other = self.numbers[k], self.numbers[leaf]
            yield from _known_entries(np.maximum(one, other), np.minimum(one, other), values)
            if k != leaf and (one == other).any():  # two leaves that are one variable in some elements
                yield from _known_entries(np.where(one == other, one, -1), other, values)

    def pairs(self, end: int) -> tuple[Pairs, list[Symbolic]] | None:
        """The lower triangle as entries of all elements alike, and for each pair their values (elements,); None where
        a leaf reads other things than level variables before ``end``, or two read the same."""
        leaves = sorted({leaf for pair in self.columns for leaf in pair})
        numbers = np.stack([self.numbers[k] for k in leaves], axis=1)
        if not len(numbers) or numbers.min() < 0 or numbers.max() >= end:
            return None
        if any(k != leaf and (self.numbers[k] == self.numbers[leaf]).any() for k, leaf in self.columns):
            return None
        # in the order of the first element's places: then those of all elements are nearly in order
        listed = sorted(self.columns, key=lambda pair: sorted((self.numbers[k][0] for k in pair), reverse=True))
        pairs = np.array([[leaves.index(k) for k in pair] for pair in listed])
        return Pairs(numbers, pairs), [self.columns[pair] for pair in listed]


@dataclass(frozen=True, eq=False)
class Sum:
    """What an element contributes to. terms : ids of what is summed;  weights : for each term, or None for 1"""

    terms: Ids
    weights: Symbolic | None = None


class Element:
    """All elements of one structure: a kernel whose leaves are level variables, other numbers and constants."""

    def __init__(self, graph: Graph, levels: Levels, kernel: Kernel, first_output: int):
        self.graph, self.levels, self.kernel = graph, levels, kernel
        self.first_output = first_output
        self.columns = [self._column(leaf) for leaf in kernel.leaves]
        read = {i: leaf.ids for i, leaf in enumerate(kernel.leaves) if leaf.ids is not None and levels.has(leaf.ids)}
        self.numbers = {i: levels.numbers(ids) for i, ids in read.items()}
        self.variables = sorted(self.numbers)
        self._put: dict[int, Symbolic] = {}

    def _column(self, leaf: Leaf) -> Symbolic:
        if leaf.ids is None:
            assert leaf.constants is not None
            return symbolic(self.graph, self.graph.constant(leaf.constants, given=True).ids)
        nodes = self.graph.nodes_of(leaf.ids)
        return Symbolic(self.graph, leaf.ids, bool(nodes) and nodes[0].gives_bool)

    # -- derivatives ------------------------------------------------------------------------------------

    def slopes(self) -> Iterator[Triplets]:
        """Derivatives of each value by the level variables; rows are the places that the value is written to."""
        for root, writes in zip(self.kernel.roots, self.kernel.writes, strict=True):
            found = gradient(self.kernel.template, root, self.variables)
            columns = self.put_back(found.values())
            for place in writes:
                rows = place.position.to_array()
                for leaf, values in zip(found, columns, strict=True):
                    yield from _known_entries(rows, self.numbers[leaf], values)

    def curvatures(self, sums: list[Sum], project: str | None = None) -> Curvatures:
        """Second derivatives of the weighted sum of all values by the level variables.

        project : the one of `block_ops.PROJECTIONS` that an element's second derivatives go through, if any
        """
        found = hessian(self.kernel.template, self._weighted(sums), self.variables)
        columns = dict(zip(found, self.put_back(found.values()), strict=True))
        return Curvatures(self.numbers, columns if project is None else self._projected(project, columns))

    def _projected(self, project: str, columns: dict[tuple[int, int], Symbolic]) -> dict[tuple[int, int], Symbolic]:
        """Each set of variables that belong together, projected; columns by pairs of them."""
        zero = as_symbolic(self.graph, np.zeros(self.kernel.size))
        found = {}
        for together in _together(self.variables, columns):
            if len(together) > MOST_ROWS:
                raise UnsupportedError(
                    f"an element depends on {len(together)} numbers; hessian(project={project!r}) takes"
                    f" {MOST_ROWS} at most",
                    "write the energy as a sum over smaller elements, of more than 16 terms (shorter sums are one "
                    "element), or add a multiple of the identity instead",
                )
            pairs = [(k, leaf) for i, k in enumerate(together) for leaf in together[: i + 1]]
            lanes = tuple(columns.get(pair, zero).ids for pair in pairs)
            block = symbolic(self.graph, self.graph.apply_block(project, lanes).ids)
            found |= {pair: block[:, lane] for lane, pair in enumerate(pairs)}
        return found

    def _weighted(self, sums: list[Sum]) -> Expression:
        """The sum of all values, each with its weight; values of one weight are summed first."""
        template = self.kernel.template
        alike: dict[object, tuple[Expression | None, list[Expression]]] = {}
        for root, writes in zip(self.kernel.roots, self.kernel.writes, strict=True):
            for place in writes:
                weights = sums[place.buffer - self.first_output].weights
                column = None if weights is None else weights.reading(weights.ids.compose(place.position))
                key, weight = (None, None) if column is None or known(column) == 1 else self._leaf(column)
                alike.setdefault(key, (weight, []))[1].append(root)
        parts = []
        for weight, roots in alike.values():
            part = _added(self.kernel, roots)
            parts.append(part if weight is None else template.make("multiply", (weight, part)))
        return _added(self.kernel, parts)

    def _leaf(self, column: Symbolic) -> tuple[object, Expression]:
        """A column as one more leaf, by which nothing is differentiated."""
        key = column.ids.key
        found = next((i for i, c in enumerate(self.columns) if i not in self.numbers and c.ids.key == key), None)
        if found is None:
            found = len(self.columns)
            self.columns.append(column)
        return key, self.kernel.template.make("leaf", (), found)

    # -- back to the graph ------------------------------------------------------------------------------

    def put_back(self, roots: Iterable[Expression]) -> list[Symbolic]:
        """Expressions of the template as columns (elements,) of the graph."""
        roots = list(roots)
        for e in bottom_up(roots):
            if id(e) not in self._put:
                self._put[id(e)] = self._made(e)
        shape = (self.kernel.size,)
        return [Symbolic(self.graph, self._put[id(r)].ids.broadcast_to(shape)) for r in roots]

    def _made(self, e: Expression) -> Symbolic:
        if e.op == "leaf":
            return self.columns[int(e.value)]  # type: ignore[arg-type]
        if e.op == "constant":
            return symbolic(self.graph, self.graph.constant(np.array(e.value)).ids)
        operands = [self._put[id(a)] for a in e.args]
        if all(not o.shape for o in operands):  # a node of numbers would be written to the tape
            operands[0] = Symbolic(self.graph, operands[0].ids.broadcast_to((self.kernel.size,)))
        return apply(e.op, *operands)


def _added(kernel: Kernel, parts: list[Expression]) -> Expression:
    total = parts[0]
    for part in parts[1:]:
        total = kernel.template.make("add", (total, part))
    return total


def _known_entries(rows: np.ndarray, cols: np.ndarray, values: Symbolic) -> Iterator[Triplets]:
    """Entries whose row and column are level variables."""
    inside = (rows >= 0) & (cols >= 0)
    if inside.all():
        yield Triplets(rows, cols, values)
    elif inside.any():
        yield Triplets(rows[inside], cols[inside], values[np.flatnonzero(inside)])


def _together(variables: list[int], pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Variables that some pairs connect, in the given order; those of no pair are left out."""
    of = {v: {v} for pair in pairs for v in pair}
    for one, other in pairs:
        if of[one] is not of[other]:
            of[one] |= of[other]
            of |= dict.fromkeys(of[other], of[one])
    sets = {id(together): together for together in of.values()}
    return [[v for v in variables if v in together] for together in sets.values()]


def elements(graph: Graph, levels: Levels, sums: list[Sum]) -> list[Element]:
    """The elements behind some sums; what reads the same level variables is one element."""
    nodes = [_as_variable(n) for n in graph.nodes]
    cut_off = Graph(nodes, graph.firsts, graph.size)
    outputs = tuple(s.terms for s in sums)
    variables = tuple(n for n in reachable(Traced(cut_off, (), outputs)) if n.op == "variable")
    cut = decompose(Traced(cut_off, variables, outputs), _IN_PLACE)
    kernels = harvest(group(cut, _IN_PLACE), _IN_PLACE).kernels
    return [Element(graph, levels, kernel, len(variables)) for kernel in _joined(levels, kernels)]


def _joined(levels: Levels, kernels: tuple[Kernel, ...]) -> list[Kernel]:
    """Kernels joined whose members read the same level variables, or some of those that the others read."""
    read = [{leaf.ids.key for leaf in k.leaves if leaf.ids is not None and levels.has(leaf.ids)} for k in kernels]
    joined: list[tuple[set, list[Kernel]]] = []
    for keys, kernel in sorted(zip(read, kernels, strict=True), key=lambda pair: -len(pair[0])):
        fitting = (members for wider, members in joined if keys <= wider and members[0].size == kernel.size)
        members = next(fitting, None)
        if members is None:
            joined.append((keys, [kernel]))
        else:
            members.append(kernel)
    return [members[0] if len(members) == 1 else _as_one(members) for _, members in joined]


def _as_one(kernels: list[Kernel]) -> Kernel:
    template, roots = Template(), []
    leaves: dict[object, Leaf] = {}
    numbers: dict[object, int] = {}
    for kernel in kernels:
        keys = [content(leaf.constants) if leaf.ids is None else leaf.ids.key for leaf in kernel.leaves]  # type: ignore[union-attr]
        for key, leaf in zip(keys, kernel.leaves, strict=True):
            leaves[key] = leaf
            numbers.setdefault(key, len(numbers))

        def renamed(e: Expression, keys: list = keys) -> Expression | None:
            return template.make("leaf", (), numbers[keys[int(e.value)]]) if e.op == "leaf" else None  # type: ignore[arg-type]

        roots += rewritten(list(kernel.roots), template, renamed)
    writes = tuple(w for k in kernels for w in k.writes)
    return replace(kernels[0], template=template, roots=tuple(roots), writes=writes, leaves=tuple(leaves.values()))


def _as_variable(node: Node) -> Node:
    is_level = node.op in (
        "segment_sum",
        "solution",
        "while",
    )  # a solution is one that does not depend on the arguments
    return Node(node.index, "variable", (), node.shape, node.first, name=f"sum {node.index}") if is_level else node
