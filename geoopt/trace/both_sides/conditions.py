"""Branches of rewritten code, and what comes of it where a condition holds and where it does not."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ...callers import user_line
from ...errors import BranchError
from ...symbolic import Symbolic, guards
from ...symbolic.caught import is_caught
from ...symbolic.checks import is_for_given
from ..choices import NOTHING as UNSET
from ..choices import Choice


class Branch:
    """An ``if``. It is iterated over: once if the condition is known, else for both sides, as True and False.

    test : the condition
    names : of the variables that a side gives values to
    variables : all that there are before the branch
    raises : the names of the errors that the two sides end by: the program has nothing of such a side
    """

    def __init__(self, test: Any, names: tuple[str, ...], variables: dict[str, Any], raises: tuple[str, str]):
        self.names = names
        self.condition = condition_of(test)
        if self.condition is None:
            self.sides = [bool(test)]
            return
        self.line = user_line()
        _refuse_caught(tuple(filter(None, raises)), sys._getframe(1))
        self.before = self._values(variables)
        self.sides = self._followed(dict(zip((True, False), raises, strict=True)))
        self.made: dict[bool, list] = {}

    def _followed(self, raises: dict[bool, str]) -> list[bool]:
        """The sides that do not raise; of given values that lead to one that does, this one."""
        wrong = [side for side, does in raises.items() if does and is_for_given(self._holds(side))]
        return wrong or [side for side, does in raises.items() if not does]

    def _holds(self, side: bool) -> Any:
        return self.condition if side else ~self.condition

    def __iter__(self) -> Iterator[bool]:
        if len(self.sides) == 1:
            yield from self.sides
            return
        for side in self.sides:
            self.side = side
            with guards.under(self._holds(side)):
                yield side

    def left(self, variables: dict[str, Any]) -> list:
        """What the variables become at the end of a side."""
        found = self._values(variables)
        if len(self.sides) == 1:
            return found
        self.made[self.side] = found
        if len(self.made) == 1:
            return self.before
        pairs = list(zip(self.made.pop(True), self.made.pop(False), strict=True))
        self.before, found[:] = [], []  # what nobody else has any more may be changed
        return [chosen(self.condition, *pairs.pop(0), self.line) for _ in self.names]

    def _values(self, variables: dict[str, Any]) -> list:
        return [variables.get(name, UNSET) for name in self.names]


class Undecided:
    """A variable between whose values there is no choice, such as texts, or arrays of other lengths, on the two sides
    of a branch: an error where it is read."""

    def __init__(self, error: BranchError):
        self.__dict__["error"] = error

    def read(self, *_: Any, **__: Any) -> Any:
        raise self.__dict__["error"]

    __getattr__ = __setattr__ = read
    __array__ = __bool__ = __call__ = __contains__ = __delitem__ = __eq__ = __float__ = __getitem__ = __hash__ = read
    __index__ = __int__ = __iter__ = __len__ = __ne__ = __setitem__ = __str__ = __repr__ = __format__ = read


for _name in (
    *("abs", "neg", "pos", "invert", "lt", "le", "gt", "ge"),
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rmatmul", "rand", "ror", "rxor"),
):
    setattr(Undecided, f"__{_name}__", Undecided.read)


def chosen(condition: Any, a: Any, b: Any, line: str) -> Any:
    """What a variable is where a condition holds, and where it does not. line : of the branch"""
    for value in (a, b):
        if type(value) is Undecided:
            return value
    try:
        return Choice(condition, line, goes_on=True).between(a, b)
    except BranchError as error:
        return Undecided(error)


def decided(*values: Any) -> None:
    """Refuse values between which there is no choice, where they go to code that is not rewritten."""
    for value in values:
        if type(value) is Undecided:
            value.read()


def returned(value: Any) -> Any:
    """What a function returns."""
    decided(value, *(value if type(value) in (tuple, list) else ()))
    return value


# -- conditions within expressions ----------------------------------------------------------------------


def condition_of(test: Any) -> Any:
    """Whether an unknown number or comparison is true; None of what Python knows."""
    if not isinstance(test, Symbolic) or test.size != 1:
        return None
    number = test.reshape(())
    return number if number.dtype == bool else number != 0


def both(first: Any, *others: Callable[[], Any]) -> Any:
    """``first and other() and ...``"""
    return _joined(first, others, until=False)


def either(first: Any, *others: Callable[[], Any]) -> Any:
    """``first or other() or ...``"""
    return _joined(first, others, until=True)


def _joined(value: Any, others: tuple[Callable[[], Any], ...], until: bool) -> Any:
    """The first value that is true, or that is not, else the last."""
    for other in others:
        condition = condition_of(value)
        if condition is None:
            if bool(value) is until:
                return value
            value = other()
            continue
        with guards.under(~condition if until else condition):
            after = other()
        value = Choice(condition, user_line(), goes_on=True).between(*((value, after) if until else (after, value)))
    return value


def compared(operations: tuple[str, ...], first: Any, *others: Callable[[], Any]) -> Any:
    """``first < other() < ...``; operations : names of `operator`'s"""
    left = first

    def of(operation: str, other: Callable[[], Any]) -> Any:
        nonlocal left
        before, left = left, other()
        return getattr(operator, operation)(before, left)

    pairs = [lambda pair=pair: of(*pair) for pair in zip(operations, others, strict=True)]
    return both(pairs[0](), *pairs[1:])


def same(a: Any, b: Any) -> bool:
    """``a is b``"""
    decided(a, b)
    return a is b


def inverse(value: Any) -> Any:
    """``not value``"""
    condition = condition_of(value)
    return (not value) if condition is None else ~condition


def choice(test: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """``a() if test else b()``"""
    condition = condition_of(test)
    if condition is None:
        return a() if test else b()
    with guards.under(condition):
        first = a()
    with guards.under(~condition):
        second = b()
    return Choice(condition, user_line(), goes_on=True).between(first, second)


def complaint(test: Any, *errors: str) -> Any:
    """The condition of a branch that does nothing but raise, warn or tell: it does where the given values lead."""
    return _check(test, False, errors)


def assertion(test: Any) -> Any:
    """The condition of an ``assert``; see `complaint`."""
    return _check(test, True, ("AssertionError",))


def _check(test: Any, passes: bool, errors: tuple[str, ...]) -> Any:
    if condition_of(test) is None:
        return test
    if guards.current() is not None:
        _refuse_caught(errors, sys._getframe(2))
    return test if is_for_given() else passes


def _refuse_caught(errors: tuple[str, ...], frame: FrameType) -> None:
    """Refuse errors that the code catches, and goes on. frame : of the code that raises them"""
    if errors and is_caught(frame, errors):
        raise BranchError("raise an error that the code catches where a symbolic condition holds")


# -- flags: whether the code has left a loop, or the function -------------------------------------------


def none(*flags: Any) -> Any:
    """Whether the code goes on."""
    goes_on: Any = True
    for flag in flags:
        if flag is True:
            return False
        if flag is not False:
            goes_on = ~flag if goes_on is True else goes_on & ~flag
    return goes_on
