"""`Run`: the states of a chain, and derivatives of losses of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ShapeError
from ..solvers.linear import Factor
from .checkpoints import Checkpoints
from .steps import State, Steps

Tell = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Setting:
    """What all runs of a chain have in common.

    count : of the steps;  over : of each parameter that varies, whether it has a value for each step
    memory : bytes;  progress : show the steps;  turn : of the threads that use the programs
    """

    steps: Steps
    count: int
    over: tuple[bool, ...]
    memory: float
    progress: bool
    turn: threading.RLock

    @contextmanager
    def shown(self, what: str) -> Iterator[Tell]:
        """Gives what is told how many steps are done."""
        if not self.progress:
            yield lambda done: None
            return
        from rich.progress import Progress

        with Progress(transient=True) as progress:
            task = progress.add_task(what, total=self.count)
            yield lambda done: progress.update(task, completed=done)


class Run:
    """What a `Chain` gives: the states from a first one on, and derivatives of losses of them.

    len(run) : how many states there are, one more than steps;  iter(run) : from the first to the last

    Examples
    --------
    >>> run = geoopt.Chain(lambda x, rate: rate * x, np.ones(2), 0.5, steps=3)(np.array([8.0, 16.0]), 0.5)
    >>> run.states
    array([[ 8., 16.],
           [ 4.,  8.],
           [ 2.,  4.],
           [ 1.,  2.]])
    >>> len(run), run.state
    (4, array([1., 2.]))
    """

    def __init__(self, setting: Setting, first: State, parameters: Sequence[Any]):
        self._setting, self._parameters = setting, parameters
        size = sum(part.nbytes for part in first)
        room = int(min(setting.memory // max(size, 1), setting.count))
        self._room_for_factors = setting.memory - setting.count * size
        self._factors: dict[int, list[Factor]] = {}  # by step
        with setting.turn, setting.shown("steps") as tell:
            self._tell: Tell | None = tell
            self._checkpoints = Checkpoints(self._advanced, first, setting.count, room)
            self._last = self._advanced(self._checkpoints.last, setting.count - 1, setting.count)
            self._tell = None

    def __len__(self) -> int:
        return self._setting.count + 1

    def __iter__(self) -> Iterator[Any]:
        return map(self._setting.steps.in_form, self._states())

    @property
    def state(self) -> Any:
        """The last state."""
        return self._setting.steps.in_form(self._last)

    @property
    def states(self) -> Any:
        """All states, as one whose arrays have an axis of length ``len(run)`` in front of their own. Those that are not
        kept are computed again."""
        return self._setting.steps.in_form(tuple(map(np.stack, zip(*self._states(), strict=True))))

    def _states(self) -> Iterator[State]:
        states = self._checkpoints.forward(self._advanced)
        for _ in range(self._setting.count):
            with self._setting.turn:
                state = next(states)
            yield state
        yield self._last

    def _advanced(self, state: State, begin: int, end: int) -> State:
        """The state after ``end`` steps, from that after ``begin``."""
        for number in range(begin, end):
            state = self._setting.steps.advanced(state, self._values(number))
            if self._tell is not None:  # for the first time
                self._keep_factors(number)
                self._tell(number + 1)
        return state

    def _values(self, number: int) -> list[Any]:
        """Of the parameters that vary, in a step."""
        pairs = zip(self._parameters, self._setting.over, strict=True)
        return [value[number] if is_over else value for value, is_over in pairs]

    def _keep_factors(self, number: int) -> None:
        """Those of a step, as far as there is room: those of the steps before give way, whose turn is later."""
        size = self._setting.steps.factor_bytes
        if not 0 < size <= self._room_for_factors:
            return
        self._factors[number] = self._setting.steps.release_factors()
        if len(self._factors) * size > self._room_for_factors:
            del self._factors[min(self._factors)]

    # -- derivatives ----------------------------------------------------------------------------------

    def vjp(self, cotangents: Any) -> tuple:
        """The slopes of a loss by the first state and by the parameters, from those by all states.

        cotangents : the slopes of the loss by the states: in the form of `states`, or a function that gives them for
            the state with a number, in its form. None stands for zeros: of an array, of a state, or of all
        Gives what is like the first state, and after it what is like each parameter that varies, in order. Slopes by
        parameters that have a value for each step have one for each step as well.

        Raises ShapeError where cotangents are not like states.
        """
        setting, sums = self._setting, [_Slope(is_over) for is_over in self._setting.over]
        with setting.turn, setting.shown("derivatives") as tell:
            cotangent = self._cotangent(cotangents, setting.count, setting.steps.zeros())
            for number, state in self._checkpoints.backward(self._advanced):
                if number in self._factors:
                    setting.steps.use_factors(self._factors[number])
                cotangent, slopes = setting.steps.slopes(state, self._values(number), cotangent)
                for total, slope in zip(sums, slopes, strict=True):
                    total.add(slope)
                cotangent = self._cotangent(cotangents, number, cotangent)
                tell(setting.count - number)
        return setting.steps.in_form(cotangent), *(total.found for total in sums)

    def _cotangent(self, cotangents: Any, number: int, others: State) -> State:
        """Of a state: what the loss has by itself, and what it has by later states."""
        steps, is_function = self._setting.steps, callable(cotangents)
        given = cotangents(number) if is_function else cotangents
        if given is None:
            return others
        found = []
        for own, other in zip(steps.parts(given), others, strict=True):
            shape = other.shape if is_function else (len(self), *other.shape)
            if own is not None and np.shape(own) != shape:
                what = f"a cotangent has shape {np.shape(own)}, what it belongs to {shape}"
                raise ShapeError(what, "give a number for each, or None")
            found.append(other if own is None else other + (own if is_function else own[number]))
        return tuple(found)


class _Slope:
    """By a parameter: the sum of those of all steps, or those of each, from the last to the first."""

    def __init__(self, is_over: bool):
        self.is_over, self._slopes, self._sum = is_over, [], None

    def add(self, slope: Any) -> None:
        if self.is_over:
            self._slopes.append(slope)
        elif self._sum is None:
            self._sum = slope
        elif sp.issparse(slope):  # SciPy's sum leaves zeros out
            self._sum.data += slope.data
        else:
            self._sum = self._sum + slope

    @property
    def found(self) -> Any:
        if not self.is_over:
            return self._sum
        return self._slopes[::-1] if sp.issparse(self._slopes[0]) else np.stack(self._slopes[::-1])
