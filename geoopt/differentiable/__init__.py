"""`Differentiable`: a function of arrays, with its programs and those of its derivatives as they are asked for.

Frameworks that differentiate by themselves (`geoopt.jax`, `geoopt.torch`) see the variables and the result of a
function as plain arrays of floats: of a sparse matrix the values, of all numbers of the result one array. Derivatives
are such functions again, so that those of any order, and batches of them, come by composition. Nothing here knows a
framework.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..derivatives import jvp, vjp
from ..options import Options
from ..pipeline import compile
from ..program import Program
from ..solvers.phased import share_solvers
from .naming import named
from .runner import Runner

Places = tuple[int, ...]  # of arguments, or of results


class Differentiable:
    """A function of arrays, and what is made of it.

    function : of symbolic arrays, returns a sequence of such
    examples : an array for each argument; code may look at their values, as it may at those that `compile` is given
    shapes : of the results
    linear : the arguments that the function is linear in, jointly
    transposed : gives of some of these, and of some results, what `transpose` does
    parent : what it is a derivative of, whose factors of linear systems serve both
    """

    def __init__(
        self,
        function: Callable,
        examples: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
        options: Options | None = None,
        linear: Places = (),
        transposed: Callable[[Places, Places], tuple[Differentiable, Places]] | None = None,
        parent: Differentiable | None = None,
    ):
        self.function, self.examples, self.options, self.linear = function, tuple(examples), options, linear
        self.shapes, self._transposed, self._parent = tuple(shapes), transposed, parent
        self._lock, self._made = threading.RLock(), {}

    def __repr__(self) -> str:
        return f"<{self.function.__name__}>"

    def shapes_in(self, dtype: Any) -> tuple[tuple[int, ...], ...]:
        """The shapes of the results; where these are not known yet, the program in this type is prepared."""
        return self.shapes

    def runner(self, dtype: Any, size: int | None = None, over: Sequence[bool] = ()) -> Runner:
        """The program in a type, prepared when it is first asked for.

        size : of a batch;  over : for each argument, whether every item of the batch has its own
        """
        dtype = np.dtype(dtype)
        program, shapes = self._program(dtype), self.shapes_in(dtype)
        if size is None:
            return self._once(("runner", dtype), lambda: Runner(program, shapes))
        names = [a.name for a, is_own in zip(program.signature.arguments, over, strict=True) if is_own]
        make = lambda: Runner(program.batched(size, names), [(size, *shape) for shape in shapes])  # noqa: E731
        return self._once(("runner", dtype, size, tuple(over)), make)

    def _program(self, dtype: np.dtype) -> Program:
        return self._once(("program", dtype), lambda: self._prepared(dtype))

    def _prepared(self, dtype: np.dtype) -> Program:
        made, parent = self._compiled(dtype), self._parent
        while parent is not None and ("program", dtype) not in parent._made:
            parent = parent._parent
        if parent is not None:
            share_solvers(made.machine, parent._program(dtype).machine)
        return made

    def _compiled(self, dtype: np.dtype) -> Program:
        def raveled(*arrays: Any) -> tuple:
            return tuple(a.reshape(-1) for a in self.function(*arrays))  # so that no number is put among others

        return compile(
            named(raveled, self.function, self.function.__name__), *self.examples, dtype=dtype, options=self.options
        )

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made, or now is: threads that want the same wait."""
        if key not in self._made:
            with self._lock:
                if key not in self._made:
                    self._made[key] = make()
        return self._made[key]

    # -- derivatives ----------------------------------------------------------------------------------

    def vjp(self, wrt: Places, of: Places) -> Differentiable:
        """The function of all arguments and a cotangent of each of some results, to a slope for each of some arguments.

        wrt : of which arguments;  of : which results have cotangents; those of the others are zero
        """
        return self._once(("vjp", wrt, of), lambda: self._vjp(wrt, of))

    def _vjp(self, wrt: Places, of: Places) -> Differentiable:
        count = len(self.examples)

        def function(*arrays: Any) -> tuple:
            return vjp(self.function, wrt)(*arrays[:count], self._among_results(of, arrays[count:]))

        def transposed(places: Places, results: Places) -> tuple[Differentiable, Places]:
            return self.jvp(tuple(wrt[r] for r in results), tuple(of[p - count] for p in places)), (*range(count),)

        examples = *self.examples, *(np.ones(self.shapes[r]) for r in of)
        shapes = [self.examples[p].shape for p in wrt]
        return self._derived("vjp", function, examples, shapes, range(count, len(examples)), transposed)

    def _among_results(self, of: Places, arrays: Sequence[Any]) -> tuple:
        given = dict(zip(of, arrays, strict=True))
        return tuple(given.get(r) for r in range(len(self.shapes)))

    def pullback(self, wrt: Places, of: Places) -> tuple[Differentiable, Places]:
        """What gives a slope for each of some arguments: `transpose` where the function is linear in them, else `vjp`.

        Returns the function of some arguments and of a cotangent of each of some results; and which arguments it takes.
        """
        if {*wrt} <= {*self.linear}:
            return self.transpose(wrt, of)
        return self.vjp(wrt, of), tuple(range(len(self.examples)))

    def jvp(self, wrt: Places, of: Places) -> Differentiable:
        """The function of all arguments and a tangent of each of some of them, to the tangents of some results."""
        return self._once(("jvp", wrt, of), lambda: self._jvp(wrt, of))

    def _jvp(self, wrt: Places, of: Places) -> Differentiable:
        count = len(self.examples)

        def chosen(*arrays: Any) -> tuple:
            results = self.function(*arrays)
            return tuple(results[r] for r in of)

        def function(*arrays: Any) -> tuple:
            return jvp(chosen, wrt)(*arrays[:count], arrays[count:])

        def transposed(places: Places, results: Places) -> tuple[Differentiable, Places]:
            return self.vjp(tuple(wrt[p - count] for p in places), tuple(of[r] for r in results)), (*range(count),)

        examples = *self.examples, *(np.ones(self.examples[p].shape) for p in wrt)
        shapes = [self.shapes[r] for r in of]
        return self._derived("jvp", function, examples, shapes, range(count, len(examples)), transposed)

    def _derived(
        self,
        what: str,
        function: Callable,
        examples: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
        linear: Iterable[int] = (),
        transposed: Callable[[Places, Places], tuple[Differentiable, Places]] | None = None,
    ) -> Differentiable:
        function = named(function, self.function, f"{what} of {self.function.__name__}")
        return Differentiable(function, examples, shapes, self.options, tuple(linear), transposed, self)

    def transpose(self, wrt: Places, of: Places) -> tuple[Differentiable, Places]:
        """The transpose of the function as one of some arguments, in which it is linear.

        Returns the function of the other arguments and the cotangents of some results, to one for each of ``wrt``; and
        which of the other arguments it takes.
        """
        if self._transposed and {*wrt} <= {*self.linear}:
            return self._transposed(wrt, of)
        return self._once(("transpose", wrt, of), lambda: self._transpose(wrt, of))

    def _transpose(self, wrt: Places, of: Places) -> tuple[Differentiable, Places]:
        others = tuple(p for p in range(len(self.examples)) if p not in wrt)

        def function(*arrays: Any) -> tuple:
            given = {p: np.zeros(self.examples[p].shape) for p in wrt} | dict(zip(others, arrays, strict=False))
            cotangents = self._among_results(of, arrays[len(others) :])
            return vjp(self.function, wrt)(*(given[p] for p in range(len(given))), cotangents)

        examples = *(self.examples[p] for p in others), *(np.ones(self.shapes[r]) for r in of)
        shapes = [self.examples[p].shape for p in wrt]
        return self._derived("transpose", function, examples, shapes), others
