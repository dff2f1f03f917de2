"""`Chain`: a step that is made again and again, as of a simulation, and derivatives through all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..options import Options
from ..signature import Argument, ordered
from ..trace import argument_names
from .run import Run, Setting
from .steps import Steps

__all__ = ["Chain", "Run"]


class Chain:
    """A number of equal steps from a state to the next, and derivatives through all of them.

    step : of the arrays of a state and of the parameters, returns the next state, in the form of the state
    state : an array of floats, or a tuple of them
    parameters : the other arguments of the step. Floats, arrays of floats and sparse matrices are variables, by which
        losses can be differentiated; all others are structure
    steps : how many
    over : names of the parameters that have a value for each step: arrays with an axis of this length in front of that
        which the step is given
    memory : bytes for what derivatives need of the steps. States come first; where not all have room, some are kept
        and the others computed again from them, each as few times as can be (Griewank & Walther 2000). What is left
        holds factors of the linear systems of the last steps: those of others are made again
    dtype, options : of the programs, as for `compile`
    progress : show the steps while they are made

    Called with a state and the parameters that vary, by place or by name, it gives a `Run`. The step is compiled once,
    whatever the number of steps is; so are its derivatives (`vjp`), when they are first needed. Threads take turns.

    Raises ArgumentError for arguments that do not fit, ShapeError where the step does not return a state.

    Examples
    --------
    >>> motion = geoopt.Chain(lambda x, rate: x - 0.1 * rate * x, np.ones(3), 1.0, steps=10)
    >>> run = motion(np.array([1.0, 2.0, 3.0]), 1.0)
    >>> np.round(run.state, 4)  # 0.9 ** 10 of the first
    array([0.3487, 0.6974, 1.046 ])
    >>> by_state, by_rate = run.vjp(lambda number: np.ones(3) if number == 10 else None)  # of the sum of the last
    >>> print(np.round(by_state, 4), np.round(by_rate, 4))
    [0.3487 0.3487 0.3487] -2.3245
    """

    def __init__(
        self,
        step: Callable[..., Any],
        state: Any,
        *parameters: Any,
        steps: int,
        over: str | Iterable[str] = (),
        memory: float = 1e9,
        dtype: Any = np.float64,
        options: Options | None = None,
        progress: bool = False,
    ):
        if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
            raise ArgumentError(f"steps={steps!r}: give a whole number from 1 on")
        self._count = int(steps)
        names = argument_names(step, (*(state if isinstance(state, tuple) else (state,)), *parameters))
        names = names[len(names) - len(parameters) :]
        self._over = self._checked((over,) if isinstance(over, str) else tuple(over), names, parameters)
        own = [value[0] if name in self._over else value for name, value in zip(names, parameters, strict=True)]
        self._steps = Steps(step, state, own, np.dtype(dtype), options)
        is_over = tuple(argument.name in self._over for argument in self._steps.variables)
        self._setting = Setting(self._steps, self._count, is_over, memory, progress, threading.RLock())

    def _checked(self, over: tuple[str, ...], names: list[str], parameters: tuple) -> tuple[str, ...]:
        for name in over:
            if name not in names:
                raise ArgumentError(f"over={name!r}: the parameters are {', '.join(map(repr, names)) or 'none'}")
            self._check_length(name, parameters[names.index(name)])
        return over

    def _check_length(self, name: str, value: Any) -> None:
        has_axis = isinstance(value, list) or np.ndim(value) > 0
        if not has_axis or len(value) != self._count:
            what = f"has {len(value)} values" if has_axis else "is a number"
            raise ArgumentError(f"{name!r} {what}; give one for each of the {self._count} steps: an axis in front")

    def __repr__(self) -> str:
        names = ", ".join(["state", *(a.name for a in self._steps.variables)])
        return f"<geoopt.Chain of {self._count} steps {self._steps.name}({names})>"

    def __call__(self, /, *values: Any, **named: Any) -> Run:
        arguments = [Argument("state", ()), *self._steps.variables]
        state, *parameters = ordered("the chain", arguments, values, named)
        for argument, value in zip(self._steps.variables, parameters, strict=True):
            if argument.name in self._over:
                self._check_length(argument.name, value)
        return Run(self._setting, self._steps.state(state), [_own(value) for value in parameters])


def _own(value: Any) -> Any:
    """A copy, for derivatives may be asked for when the caller has changed the original."""
    return [one.copy() for one in value] if isinstance(value, list) else copy(value)
