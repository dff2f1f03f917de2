"""`PhasedMachine`: programs that solve linear systems, or run loops as often as values decide, on machines that compute
what is between them, and the turns of loops."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import SolverError
from ..graph.phased import Phases, Repeat, Solve
from ..numeric import on_host
from ..runtime.batch import memory_of_items
from ..runtime.machine import Machine
from ..signature import Argument
from .linear import LinearSolver
from .phase_arrays import by_item, columns, dropped, for_item, key_of, of_one_matrix, uses_factors_again


@dataclass(frozen=True)
class Turns:
    """What runs a loop. turn : computes the state after a turn, and whether there is that turn;  test : this alone,
    where a turn that there is not may fail"""

    turn: Machine
    test: Machine | None


class PhasedMachine:
    """A `Machine` that runs others one after the other and solves systems and runs loops in between, on the host.

    Systems are solved in double precision. Those with one matrix share its factor; a matrix that does not depend on
    the variables is factored when this is made. Threads that call at once take turns.

    turns : by the key of each loop
    threads : that factor and solve
    may_fail : a system that cannot be solved is an error only where a result is NaN by it: its solution may be that of
        a path through branches which is not taken
    """

    def __init__(
        self,
        phases: Phases,
        machines: list[Machine],
        turns: dict[tuple, Turns],
        dtype: np.dtype,
        threads: int,
        may_fail: bool,
    ):
        self.phases, self.machines, self.turns, self.dtype = phases, machines, turns, dtype
        self.device = machines[0].device
        self.records = tuple(record for machine in machines for record in machine.records)
        machines = [*machines, *(machine for t in turns.values() for machine in (t.turn, t.test) if machine)]
        self.plans = tuple(plan for machine in machines for plan in machine.plans)
        self.output_shapes = tuple(phases.shapes[a] for a in phases.outputs)
        self.traits = machines[-1].traits
        self.code = {name: code for machine in machines for name, code in machine.code.items()}
        self.sources = {kind: _joined(machines, kind) for kind in machines[-1].sources}
        self.may_fail = may_fail
        self.solvers = _solvers(phases, threads)
        self._broken: dict[tuple, SolverError] = {}  # known matrices that cannot be factored
        self._factor_known()
        self._places = {array: i for i, array in reversed([*enumerate(phases.outputs)])}
        self._last = max(i for i, phase in enumerate(phases.phases) if phase.is_followed)
        self._dropped = dropped(phases)
        self._uses_factors_again = uses_factors_again(phases)
        self._known = {array: values.reshape(-1) for array, values in phases.known.items()}
        self._inputs = 0  # how many arrays of the phases are variables
        self.turn = threading.Lock()

    def _factor_known(self) -> None:
        known = {key_of(solve): solve.values for solve in self.phases.solves if solve.values in self.phases.known}
        for key, values in known.items():
            try:
                self.solvers[key].factor(self.phases.known[values])
            except SolverError as error:
                if not self.may_fail:
                    raise
                self._broken[key] = error

    @property
    def solves(self) -> tuple[dict[str, Any], ...]:
        return tuple(self._counts(solve) for solve in self.phases.solves)

    def _counts(self, solve: Solve) -> dict[str, Any]:
        pattern, shape = solve.system.pattern, self.phases.shapes[solve.right]
        return {
            "unknowns": pattern.shape[0],
            "entries": pattern.nnz,
            "right_hand_sides": math.prod(shape[1:]),
            "is_constant": solve.values in self.phases.known,
            "factor_bytes": self.solvers[key_of(solve)].factor_bytes,
        }

    @property
    def varying_solvers(self) -> list[LinearSolver]:
        """Those of matrices that depend on the variables."""
        return [self.solvers[key] for keys in self.varying_keys().values() for key in keys]

    def varying_keys(self) -> dict[tuple, list[tuple]]:
        """The keys of matrices that vary, in the order of their systems, by what those have in common that can share a
        factor of equal values."""
        found: dict[tuple, list[tuple]] = {}
        for solve in self.phases.solves:
            if solve.values not in self.phases.known:
                keys = found.setdefault(solve.system.matrix_key, [])
                if key_of(solve) not in keys:
                    keys.append(key_of(solve))
        return found

    # -- memory ---------------------------------------------------------------------------------------

    def array(self, argument: Argument, value: Any) -> Array:
        return self.machines[0].array(argument, value)

    def flat(self, array: Array) -> Array:
        return self.machines[0].flat(array)

    def memory(self, size: int, inputs: list[Array]) -> Array:
        return self.machines[0].memory(size, inputs)

    def output(self, number: int, inputs: list[Array]) -> Array:
        return self.memory(math.prod(self.output_shapes[number]), inputs)

    def matrix(self, pattern: Any, values: Array) -> Any:
        return self.machines[0].matrix(pattern, values)

    # -- running --------------------------------------------------------------------------------------

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        self._run(inputs, outputs, None)

    def run_batch(self, size: int, inputs: list[Array], outputs: list[Array]) -> None:
        """Each phase for all items, where no factor is needed after that of the next item has taken its place, and no
        loop ends sooner for one item than for another."""
        if not (self.may_fail or self._uses_factors_again or self.phases.loops):
            self._run(inputs, outputs, size)
            return
        for item in range(size):
            with _of_item(item):
                self.run([for_item(x, item) for x in inputs], [y[item] for y in outputs])

    def _run(self, inputs: list[Array], outputs: list[Array], size: int | None) -> None:
        """What is computed before the last system is solved reaches the outputs at the end only: it may be singular.

        size : how many items a batch has; None for no batch
        """
        # flat; of a batch, with an axis for items in front, unless all have the same
        arrays: dict[int, Array] = {**self._known, **dict(enumerate(inputs))}
        with self.turn:
            self._inputs = len(inputs)
            factored: set[tuple] = set()
            failures: list[SolverError] = []
            for number, phase in enumerate(self.phases.phases):
                for array in phase.writes:
                    is_direct = number > self._last and array in self._places and not self.may_fail
                    arrays[array] = outputs[self._places[array]] if is_direct else self._new(array, inputs, size)
                if phase.program is not None:
                    read, written = ([arrays[a] for a in places] for places in (phase.reads, phase.writes))
                    machine = self.machines[phase.program]
                    machine.run(read, written) if size is None else machine.run_batch(size, read, written)
                for together in of_one_matrix(phase):
                    for solve in together:
                        arrays[solve.solution] = self._new(solve.solution, inputs, size)
                    try:
                        self._solve(together, arrays, factored)
                    except SolverError as error:
                        failures.append(error)
                        if not self.may_fail:
                            raise
                        for solve in together:
                            arrays[solve.solution][:] = np.nan
                for repeat in phase.loops:
                    arrays[repeat.end] = self._after_loop(repeat, arrays, inputs)
                for array in self._dropped[number]:
                    del arrays[array]
        if failures and any(np.isnan(arrays[a]).any() for a in self.phases.outputs):
            raise failures[0]
        for array, output in zip(self.phases.outputs, outputs, strict=True):
            if arrays[array] is not output:
                output[:] = arrays[array]

    def _new(self, array: int, inputs: list[Array], size: int | None) -> Array:
        entries = math.prod(self.phases.shapes[array])
        return self.memory(entries, inputs) if size is None else memory_of_items(self, size, entries, inputs)

    def _after_loop(self, repeat: Repeat, arrays: dict[int, Array], inputs: list[Array]) -> Array:
        """The state after a loop. Of three states in memory one is that before it, which others may read."""
        turns, given = self.turns[repeat.loop.key], [arrays[a] for a in repeat.given]
        state, after, spare = arrays[repeat.begin], *(self._new(repeat.begin, inputs, None) for _ in range(2))
        goes_on = self.memory(1, inputs)
        while True:
            if turns.test is not None:
                turns.test.run([state, *given], [goes_on])
            if turns.test is None or goes_on[0]:
                turns.turn.run([state, *given], [after, goes_on])
            if not goes_on[0]:
                return state
            state, after, spare = after, spare, after

    def _solve(self, together: list[Solve], arrays: dict[int, Array], factored: set[tuple]) -> None:
        """Solve systems of one matrix with the columns of all their right-hand sides at once; of a batch, also with
        those of all items, where these have the same matrix."""
        values = arrays[together[0].values]
        rights, found = [arrays[solve.right] for solve in together], [arrays[solve.solution] for solve in together]
        if values.ndim == 1:
            self._solve_at_once(together, values, rights, found, factored)
            return
        for item, own in enumerate(values):
            factored.discard(key_of(together[0]))
            with _of_item(item):
                of_item = [for_item(right, item) for right in rights]
                self._solve_at_once(together, own, of_item, [x[item] for x in found], factored)

    def _solve_at_once(
        self, together: list[Solve], values: Array, rights: list[Array], found: list[Array], factored: set[tuple]
    ) -> None:
        """values : (nnz,);  rights, found : flat, or by item"""
        system, key = together[0].system, key_of(together[0])
        solver = self.solvers[key]
        if key in self._broken:
            raise self._broken[key]
        if key not in factored and together[0].values not in self.phases.known:
            is_given = together[0].values < self._inputs  # the caller may change it
            solver.factor(on_host(values).copy() if is_given else on_host(values))
            factored.add(key)
        shapes = [self.phases.shapes[solve.right] for solve in together]
        parts = [columns(on_host(right), shape) for right, shape in zip(rights, shapes, strict=True)]
        right = parts[0] if len(parts) == 1 else np.column_stack(parts)
        if not system.may_be_singular:  # SciPy's functions take anything
            _check(right, solver)
        x = solver.solve(right, system.is_transposed, system.largest_residual)
        ends = np.cumsum([part[0].size for part in parts])
        solutions = [x] if len(parts) == 1 else np.split(x, ends[:-1], axis=1)
        for target, part, given in zip(found, solutions, rights, strict=True):
            solution = part.reshape(-1) if given.ndim == 1 else by_item(part, len(given))
            target[:] = np.asarray(solution, self.dtype, like=target)


def _joined(machines: list[Machine], kind: str) -> Callable[[], str]:
    return lambda: "\n\n".join(machine.sources[kind]() for machine in machines)


def share_solvers(machine: Machine, other: Machine) -> None:
    """Have a machine solve with the solvers of another one, where both solve. It computes the same, and more or less
    besides: what one of the two has factored last, the other need not. They take turns."""
    if not (isinstance(machine, PhasedMachine) and isinstance(other, PhasedMachine)):
        return
    mine, theirs = machine.varying_keys(), other.varying_keys()
    for matrix in mine.keys() & theirs.keys():
        if len(mine[matrix]) == len(theirs[matrix]):
            pairs = zip(mine[matrix], theirs[matrix], strict=True)
            machine.solvers |= {own: other.solvers[their] for own, their in pairs}
    machine.turn = other.turn


@contextmanager
def _of_item(item: int) -> Iterator[None]:
    """Within this, errors say which item of a batch they are of."""
    try:
        yield
    except SolverError as error:
        raise SolverError(f"item {item} of the batch: {error}") from error


def _solvers(phases: Phases, threads: int) -> dict[tuple, LinearSolver]:
    """One for each matrix, analysed."""
    found: dict[tuple, LinearSolver] = {}
    for solve in phases.solves:
        key = key_of(solve)
        if key not in found:
            system, pattern = solve.system, solve.system.pattern
            how = system.numbers, system.may_be_singular, threads
            found[key] = LinearSolver(pattern.indptr, pattern.indices, *how)
            found[key].analyse()
    return found


def _check(right: np.ndarray, solver: LinearSolver) -> None:
    if not np.isfinite(right).all():
        row = int(np.nonzero(~np.isfinite(right))[0][0])
        entry = right.reshape(len(right), -1)[row]
        what = entry[~np.isfinite(entry)][0]
        raise SolverError(f"the right-hand side of a linear system has an entry {what} in row {solver.name(row)}")
