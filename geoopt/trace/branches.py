"""Code with branches on unknown numbers: it is run along each of a few paths, and the results are chosen between."""

from __future__ import annotations

import dis
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..callers import is_of_libraries, scipy_remedy
from ..errors import ArgumentError, BranchError, GeooptError
from ..graph import Graph, Runs
from ..remedies import AT_ONCE, CHOOSE
from ..symbolic.asking import Asked
from ..symbolic.paths import Path
from .choices import NOTHING, Choice

MOST = 256  # paths ...
LARGE, MOST_LARGE = 1 << 20, 32  # ... and so many once there are so many scalars, or runs are long: each adds its own
SEEN, DOUBLING = 4, 0.75  # branches of one line that have been followed; what they did at least, as a power of two


class _Unchanged(threading.local):
    """depth : how many `unchanged` are open in a thread"""

    depth = 0


_UNCHANGED = _Unchanged()


def chosen_result(graph: Graph, run: Callable[[], Any]) -> tuple[Any, int]:
    """The result of traced code, in which conditions choose between the results of its paths, and how many these are.

    run : calls the code on stand-ins that no other run has changed, and on known arrays `as_given`
    """
    graph.path = Path([])
    result = run()
    if not graph.path.conditions:
        return result, 1
    with unchanged():  # the first path once more: what it writes would not be there for the others
        paths = _Paths(graph, run)
        return paths.chosen([]), paths.count


class _Paths:
    """The runs of code along its paths. The first is the one that the given values take. What another raises is no part
    of the program, as checks are none."""

    def __init__(self, graph: Graph, run: Callable[[], Any]):
        self.graph, self.run = graph, run
        self.runs = graph.runs = Runs()
        self.count = 0

    def chosen(self, taken: list[bool], asked: Asked | None = None) -> Any:
        """The result where the conditions that begin a path hold or not as they are ``taken``. asked : for the last"""
        if self.count >= self._most():
            what = f"take more than {self._most()} paths through branches on symbolic values"
            raise BranchError(what, asked and asked.line, asked.remedy if asked else CHOOSE, asked and asked.code)
        self.count += 1
        path = self.graph.path = Path(list(taken))
        self.runs.begin()
        result = self._result(asked)
        for place in reversed(range(len(taken), len(path.conditions))):
            condition, asked, holds = path.conditions[place], path.asked[place], path.taken[place]
            other = self.chosen([*path.taken[:place], not holds], asked)
            choice = Choice(condition, asked.line)
            result = choice.between(result, other) if holds else choice.between(other, result)
            if not taken:
                self._refuse_repeated(path, place)
        return result

    def _most(self) -> int:
        return MOST_LARGE if self.graph.size > LARGE or self.runs.are_long else MOST

    def _refuse_repeated(self, path: Path, place: int) -> None:
        """Refuse a line that branches again and again, and doubles the paths nearly each time, once that shows, which
        is long before there are too many. path : the first, whose conditions are followed to both sides from a place"""
        followed = path.asked[place:]
        if len(followed) < SEEN or any(a.line != followed[0].line for a in followed):
            return
        repeated = sum(a.line == followed[0].line for a in path.asked)
        rate = math.log2(self.count) / len(followed)
        if rate >= DOUBLING and rate * repeated > math.log2(self._most()):
            what = f"branch {repeated} times at one line, which would take more than {self._most()} paths"
            remedy = followed[0].remedy
            raise BranchError(what, followed[0].line, AT_ONCE if remedy == CHOOSE else remedy, followed[0].code)

    def _result(self, asked: Asked | None) -> Any:
        try:
            return self.run()
        except GeooptError:
            raise
        except Exception as error:
            if self.count == 1 or _is_of_writing(error):
                raise
            if is_raised_by_user(error):
                return NOTHING
            what = f"branch on a symbolic value: the other way ends by {type(error).__name__}: {error}"
            raise BranchError(what, asked and asked.line, scipy_remedy(error) or CHOOSE) from error


def is_raised_by_user(error: Exception, is_library: Callable[[str], bool] = is_of_libraries) -> bool:
    """Whether traced code itself raised an error, by ``raise``: one of a library's may come of what stands in for
    values."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    code = innermost.tb_frame.f_code
    return dis.opname[code.co_code[innermost.tb_lasti]] == "RAISE_VARARGS" and not is_library(code.co_filename)


@contextmanager
def unchanged() -> Iterator[None]:
    """While this is open, known arrays are given so that they cannot be written to: the next run would find what this
    one has written."""
    _UNCHANGED.depth += 1
    try:
        yield
    except ValueError as error:
        if not _is_of_writing(error):
            raise
        what = "the function writes to a known argument, and is run more than once for its branches on symbolic values"
        raise ArgumentError(f"{what}, or for float(x) of one: copy the argument first") from error
    finally:
        _UNCHANGED.depth -= 1


def as_given(value: Any) -> Any:
    """A known argument for one run. Views leave the array itself to other threads."""
    if not _UNCHANGED.depth or not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _is_of_writing(error: Exception) -> bool:
    return isinstance(error, ValueError) and "read-only" in str(error)
