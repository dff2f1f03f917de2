"""`While` and `For`: loops that run as often as values decide. Turns are run one by one until that is unknown; then one
turn is run for all (`turns`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...callers import user_line
from ..choices import NOTHING as UNSET
from .conditions import both, condition_of
from .turns import Turn, cells_of

FEW = 16  # turns of a loop over a range that are run one by one


class While:
    """A ``while`` of rewritten code, which is iterated over once for each turn that is run.

    names : of the variables that a turn, or the condition, gives values to, and that are read later
    """

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        self.is_over = False
        self._turn: Turn | None = None  # with a state

    def __iter__(self) -> Iterator[None]:
        try:
            while not self.is_over:
                yield
        finally:
            if self._turn is not None:
                self._turn.guard.close()

    def begin(self, variables: dict[str, Any]) -> list:
        """What the names are at the beginning of a turn. variables : all that there are"""
        if self._turn is not None:
            return self._turn.begin()
        self._variables, self._values = variables, self._values_of(variables)
        return self._values

    def goes_on(self, test: Any) -> bool:
        """Whether a turn is run. test : the condition"""
        condition = condition_of(test)
        if self._turn is not None:
            self._turn.enter(condition, test)
            return True
        if condition is None:
            self.is_over = not test
            return bool(test)
        self._turn = Turn(self.names, self._values, cells_of(self._variables), condition.graph)
        return False

    def end(self, variables: dict[str, Any]) -> list:
        """What the names are after a turn, or after the loop."""
        found = self._values_of(variables)
        if self._turn is None or self._turn.condition is None:
            return found
        found, self.is_over = self._turn.end(found)
        return found

    def _values_of(self, variables: dict[str, Any]) -> list:
        return [variables.get(name, UNSET) for name in self.names]


class For(While):
    """A ``for`` of rewritten code that values may leave. One over a range that does not read the place of the turn as
    an integer is run with a state from then on; all others to their end, where turns may do nothing."""

    def __init__(self, names: tuple[str, ...], values: Iterable):
        super().__init__(names)
        self._line = user_line()
        self._range = values if type(values) is range and self._line not in GIVEN_UP.lines else None
        self._values_left = iter(values)
        self._item: Any = None

    def goes_on(self, stays: Any, count: Any) -> bool:
        """Whether a turn is run. stays : whether the loop has not been left;  count : of the turns before"""
        if self._turn is not None:
            return super().goes_on(both(stays, lambda: count < len(self._range)))  # type: ignore[arg-type]
        is_unknown = condition_of(stays) is not None
        if is_unknown and self._range is not None and len(self._range) - count >= FEW:
            GIVEN_UP.running.append(self._line)
            return super().goes_on(both(stays, lambda: count < len(self._range)))  # type: ignore[arg-type]
        self._item = next(self._values_left, UNSET) if is_unknown or stays else UNSET
        self.is_over = self._item is UNSET
        return not self.is_over

    def rest(self, stays: Any) -> Any:
        """The condition of what is done in a turn."""
        return stays if self._turn is None else True

    def item(self, count: Any) -> Any:
        """What the variable of the loop is in a turn."""
        if self._turn is None:
            return self._item
        return self._range.start + self._range.step * count  # type: ignore[union-attr]

    def end(self, variables: dict[str, Any]) -> list:
        found = super().end(variables)
        if self._turn is not None and self.is_over:
            GIVEN_UP.running.remove(self._line)
        return found


class _GivenUp(threading.local):
    """The lines of loops over ranges that are run with a state now, and of those in a trace that cannot be."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.lines: set[str] = set()

    @contextmanager
    def of_one_trace(self) -> Iterator[None]:
        """Know nothing of other traces while this is open."""
        before = self.running, self.lines
        self.running, self.lines = [], set()
        try:
            yield
        finally:
            self.running, self.lines = before

    def add(self) -> bool:
        """Give up the loop that an error has ended. Returns whether there is one."""
        line = self.running.pop() if self.running else None
        self.running.clear()
        if line is not None:
            self.lines.add(line)
        return line is not None


GIVEN_UP = _GivenUp()
