"""`Turn`: one turn of a loop that values end, run with a state of its own: numbers in the place of all that the turn
changes, which are found by running it. What the state is after the loop is a node of the graph (`graph.while_loop`)."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...callers import user_line
from ...errors import BranchError
from ...graph import Graph, Node
from ...graph.loop_nodes import while_node
from ...remedies import STEPS
from ...symbolic import Symbolic, guards, symbolic
from ...symbolic.aliases import link_each, may_be
from ...symbolic.arithmetic import as_symbolic
from ...symbolic.fillable import Cell, Fillable, owner_of, resolved
from ..choices import NOTHING as UNSET
from .conditions import decided

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


@dataclass(frozen=True)
class _Part:
    """What a turn changes: a variable, or the entries of an array. place : among the names, or of the array

    like : a value of its form;  start : its numbers and arrays before the loop;  are_bool : which are comparisons
    """

    place: int | Cell
    like: Any
    start: list[Symbolic]
    are_bool: list[bool]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [leaf.shape for leaf in self.start]


class Turn:
    """One turn of a loop, run with a state in the place of what turns change, until it is known what they do."""

    def __init__(self, names: tuple[str, ...], values: list, cells: dict[Cell, set[str]], graph: Graph):
        """values : of the names, before the loop;  cells : the arrays that the code may change, each with the
        names of the variables that stand for it"""
        self.names, self.values, self.cells, self.graph = names, values, cells, graph
        self.line = user_line()
        self.condition: Symbolic | None = None
        self.parts: list[_Part] = []
        self.starts = [_copied(value) for value in values]  # which a turn does not change
        self.around = _around(graph)
        self.guard = ExitStack()

    def begin(self) -> list:
        """What the names are at the beginning of the turn."""
        self.start = _flat(self.graph, [leaf for part in self.parts for leaf in part.start])
        self.state = self.graph.variable("state", (self.start.size,)) if self.parts else None
        if self.state is not None:
            self.graph.given[self.state.index] = self.start.ids
        self.now = self._with(self.state)
        return self.now

    def enter(self, condition: Symbolic | None, test: Any) -> None:
        """Begin what is done where there is the turn."""
        if condition is None:
            what = f"run a loop whose condition is unknown at first, and always {bool(test)} then"
            raise BranchError(what, self.line, STEPS)
        self.condition = condition
        self.guard.enter_context(guards.under(condition, is_loop=True))
        for array in _arrays(self.now):
            guards.made(array)
        for cell in self.cells:
            cell.free()
        self.before = [cell.contents() for cell in self.cells]

    def end(self, found: list) -> tuple[list, bool]:
        """What the names are after the turn; last, whether it is known what a turn does: they are as after the loop."""
        self.guard.close()
        known = [part.place for part in self.parts]
        missing = [part for part in self._changed_names(found) if part.place not in known]
        # arrays of variables that turns give anew are not changed once these have a state
        missing = missing or [part for part in self._changed_arrays() if part.place not in known]
        if missing:
            self.parts += missing
            self.condition = None
            return self.values, False
        if self.state is None:
            raise BranchError("run a loop that ends where values decide, and changes nothing", self.line, STEPS)
        shared = self._shared(found)
        self._refuse_changed([*self._shared(self.values), *shared])
        end = _flat(self.graph, [leaf for part in self.parts for leaf in self._after(part, found)])
        condition = functools.reduce(operator.and_, self.around, self.condition)
        goes_on = np.where(condition, 1.0, 0.0).reshape(1)  # type: ignore[call-overload]
        after = self._with(while_node(self.graph, self.state.ids, self.start.ids, end.ids, goes_on.ids))
        self._link(after, shared)
        return after, True

    def _with(self, state: Node | None) -> list:
        """The values of the names with those of a state, which are put into arrays, too."""
        with guards.outside():  # not only where the code gets here
            for cell in self.cells:
                cell.restore()
        now, at = list(self.values), 0
        for part in self.parts:
            leaves = []
            for shape, is_bool in zip(part.shapes, part.are_bool, strict=True):
                size = math.prod(shape)
                leaf = symbolic(self.graph, state.ids[at : at + size].reshape(shape))  # type: ignore[union-attr]
                leaves.append(leaf != 0 if is_bool else leaf)
                at += size
            if isinstance(part.place, Cell):
                with guards.outside() if state is self.state else nullcontext():
                    part.place.put(leaves[0])
            else:
                now[part.place] = _built(part.like, iter(leaves))
        return now

    def _changed_names(self, found: list) -> Iterator[_Part]:
        for place, (now, after) in enumerate(zip(self.now, found, strict=True)):
            if not _is_same(now, after):
                yield self._part(place, self.starts[place], after)

    def _changed_arrays(self) -> Iterator[_Part]:
        for cell, before in zip(self.cells, self.before, strict=True):
            if not cell.is_like(before):
                yield _Part(cell, None, [as_symbolic(self.graph, cell.start)], [False])

    def _shared(self, values: list) -> list[tuple[int, int | Cell]]:
        """Which of the names that have a state may stand for one array with others, or with an array of `cells`."""
        own = [part.place for part in self.parts if isinstance(part.place, int)]
        arrays = {place: set().union(*(may_be(owner_of(a)) for a in _arrays(values[place]))) for place in own}
        pairs: list[tuple[int, int | Cell]] = [
            (place, other) for place, other in itertools.combinations(own, 2) if arrays[place] & arrays[other]
        ]
        mine = {self.names[place] for place in own}
        seen = [cell for cell in self.cells if self.cells[cell] - mine]  # by other variables
        return pairs + [(place, cell) for place in own for cell in seen if id(cell.array) in arrays[place]]

    def _refuse_changed(self, shared: list[tuple[int, int | Cell]]) -> None:
        """Refuse that what stands for one array before a turn is changed in it: each has a state of its own."""
        parts = {part.place for part in self.parts}
        for place, other in shared:
            is_changed = other in parts if isinstance(other, Cell) else self._is_changed(other)
            if is_changed or self._is_changed(place):
                others = "another variable" if isinstance(other, Cell) else self.names[other]
                raise self._refusal(f"have {self.names[place]!r} and {others} stand for one array, and change it")

    def _is_changed(self, place: int) -> bool:
        """Whether a turn puts something into the array that a name stands for before it."""
        return any(isinstance(a, Symbolic) and a.was_changed for a in _arrays(self.now[place]))

    def _link(self, after: list, shared: list[tuple[int, int | Cell]]) -> None:
        """Note which variables may stand for one array after the loop, which then is not changed."""
        for place, other in shared:
            others = [other.memory] if isinstance(other, Cell) else [*_arrays(after[other])]
            for one, another in itertools.product(_arrays(after[place]), others):
                if another is not None:
                    link_each(one, another)

    def _part(self, place: int, start: Any, after: Any) -> _Part:
        decided(after)
        like = after if start is UNSET else start
        leaves, others = self._leaves(place, like), self._leaves(place, after)
        self._require_shapes(place, [leaf.shape for leaf in leaves], others)
        if start is UNSET:  # what it is without a turn: Python would not have it
            leaves = [as_symbolic(self.graph, np.zeros(leaf.shape)) for leaf in leaves]
        are_bool = [
            after.dtype == bool and (start is UNSET or first.dtype == bool or type(start) is bool)
            for first, after in zip(leaves, others, strict=True)
        ]
        return _Part(place, like, leaves, are_bool)

    def _after(self, part: _Part, found: list) -> list[Symbolic]:
        """The numbers and arrays of a part after the turn."""
        if isinstance(part.place, Cell):
            return [as_symbolic(self.graph, part.place.contents())]
        decided(found[part.place])
        leaves = self._leaves(part.place, found[part.place])
        self._require_shapes(part.place, part.shapes, leaves)
        return leaves

    def _leaves(self, place: int, value: Any) -> list[Symbolic]:
        leaves = _leaves(self.graph, value)
        if leaves is None:
            what = f"a {type(value).__name__}" if value is not UNSET else "not always there"
            raise self._refusal(f"change {self.names[place]!r}, which is {what}")
        return leaves

    def _require_shapes(self, place: int, shapes: list, after: list[Symbolic]) -> None:
        if shapes != [leaf.shape for leaf in after]:
            raise self._refusal(f"change the shape of {self.names[place]!r}")

    def _refusal(self, what: str) -> BranchError:
        return BranchError(f"{what} in a loop that ends where values decide", self.line, STEPS)


def _around(graph: Graph) -> list[Any]:
    """The conditions under which the code gets to a loop, which is not run otherwise: it might not end."""
    found = [] if guards.current() is None else [guards.current()]
    path = graph.path
    if path is not None:
        pairs = zip(path.conditions, path.taken, strict=False)
        found += [condition if holds else ~condition for condition, holds in pairs]
    return found


def cells_of(variables: dict[str, Any]) -> dict[Cell, set[str]]:
    """The arrays that some variables stand for, or for a view of, each with the names of these."""
    found: dict[int, tuple[Cell, set[str]]] = {}
    for name, value in variables.items():
        for array in _arrays(value):
            owner = owner_of(array)
            if id(owner) not in found:
                found[id(owner)] = Cell(owner), set()
            found[id(owner)][1].add(name)
    return dict(found.values())


def _leaves(graph: Graph, value: Any) -> list[Symbolic] | None:
    """The numbers and arrays of a value; None where it is something else."""
    value = resolved(value)
    if type(value) in (list, tuple):
        parts = [_leaves(graph, v) for v in value]
        return None if any(p is None for p in parts) else [leaf for p in parts for leaf in p]  # type: ignore[union-attr]
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "bif"
    return [as_symbolic(graph, value)] if is_array or isinstance(value, (Symbolic, *_NUMBERS)) else None


def _copied(value: Any) -> Any:
    """A value, with arrays of its own in the place of those that may change."""
    if type(value) in (list, tuple):
        return type(value)([_copied(v) for v in value])
    value = resolved(value)
    return value.copy() if isinstance(value, (Symbolic, Fillable)) and value.ndim else value


def _built(like: Any, leaves: Iterator[Symbolic]) -> Any:
    """A value of other numbers and arrays."""
    return type(like)([_built(v, leaves) for v in like]) if type(like) in (list, tuple) else next(leaves)


def _arrays(value: Any) -> Iterator[Symbolic | Fillable]:
    if type(value) in (list, tuple):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, (Symbolic, Fillable)) and value.ndim:
        yield value


def _flat(graph: Graph, leaves: list[Symbolic]) -> Symbolic:
    """Numbers and arrays one after the other; comparisons as 1 and 0."""
    numbers = [np.where(x, 1.0, 0.0) if x.dtype == bool else x for x in leaves]  # type: ignore[call-overload]
    parts = [as_symbolic(graph, x).reshape(-1) for x in numbers]
    return np.concatenate(parts) if parts else as_symbolic(graph, np.zeros(0))  # type: ignore[return-value]


def _is_same(a: Any, b: Any) -> bool:
    """Whether a variable is what it was."""
    a, b = resolved(a), resolved(b)
    if a is b:
        return True
    if isinstance(a, Symbolic) and isinstance(b, Symbolic):
        return a.shape == b.shape and a.dtype == b.dtype and a.ids.key == b.ids.key
    if type(a) in (list, tuple) and type(a) is type(b) and len(a) == len(b):
        return all(_is_same(v, w) for v, w in zip(a, b, strict=True))
    return type(a) is type(b) and isinstance(a, (str, *_NUMBERS)) and a == b
