"""`PhasedMachine`: programs that solve linear systems, on machines that compute what is between them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import SolverError
from ..graph.phased import Phase, Phases, Solve
from ..numeric import on_host
from ..runtime.machine import Machine
from ..signature import Argument
from .linear import LinearSolver


class PhasedMachine:
    """A `Machine` that runs others one after the other and solves systems in between, on the host.

    Systems are solved in double precision. Those with one matrix share its factor; a matrix that does not depend on
    the variables is factored when this is made. Threads that call at once take turns.

    threads : that factor and solve
    may_fail : a system that cannot be solved is an error only where a result is NaN by it: its solution may be that of
        a path through branches which is not taken
    """

    def __init__(self, phases: Phases, machines: list[Machine], dtype: np.dtype, threads: int, may_fail: bool):
        self.phases, self.machines, self.dtype = phases, machines, dtype
        self.device = machines[0].device
        self.records = tuple(record for machine in machines for record in machine.records)
        self.plans = tuple(plan for machine in machines for plan in machine.plans)
        self.output_shapes = tuple(phases.shapes[a] for a in phases.outputs)
        self.traits = machines[-1].traits
        self.code_bytes = sum(machine.code_bytes for machine in machines)
        self.sources = {kind: self._joined(kind) for kind in machines[-1].sources}
        self.may_fail = may_fail
        self.solvers = _solvers(phases, threads)
        self._broken: dict[tuple, SolverError] = {}  # known matrices that cannot be factored
        self._factor_known()
        self._places = {array: i for i, array in reversed([*enumerate(phases.outputs)])}
        self._last = max(i for i, phase in enumerate(phases.phases) if phase.solves)
        self._dropped = _dropped(phases)
        self._turn = threading.Lock()

    def _factor_known(self) -> None:
        known = {_key(solve): solve.values for solve in self.phases.solves if solve.values in self.phases.known}
        for key, values in known.items():
            try:
                self.solvers[key].factor(self.phases.known[values])
            except SolverError as error:
                if not self.may_fail:
                    raise
                self._broken[key] = error

    def _joined(self, kind: str) -> Callable[[], str]:
        return lambda: "\n\n".join(machine.sources[kind]() for machine in self.machines)

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
            "factor_bytes": self.solvers[_key(solve)].factor_bytes,
        }

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
        """What is computed before the last system is solved reaches the outputs at the end only: it may be singular."""
        arrays: dict[int, Array] = {**self.phases.known, **dict(enumerate(inputs))}
        with self._turn:
            factored: set[tuple] = set()
            failures: list[SolverError] = []
            for number, phase in enumerate(self.phases.phases):
                for array in phase.writes:
                    is_direct = number > self._last and array in self._places and not self.may_fail
                    arrays[array] = outputs[self._places[array]] if is_direct else self._new(array, inputs)
                if phase.program is not None:
                    read, written = ([arrays[a] for a in places] for places in (phase.reads, phase.writes))
                    self.machines[phase.program].run(read, written)
                for together in _of_one_matrix(phase):
                    try:
                        self._solve(together, arrays, inputs, factored)
                    except SolverError as error:
                        failures.append(error)
                        if not self.may_fail:
                            raise
                        for solve in together:
                            arrays[solve.solution] = self._new(solve.solution, inputs)
                            arrays[solve.solution][:] = np.nan
                for array in self._dropped[number]:
                    del arrays[array]
        if failures and any(np.isnan(arrays[a]).any() for a in self.phases.outputs):
            raise failures[0]
        for array, output in zip(self.phases.outputs, outputs, strict=True):
            if arrays[array] is not output:
                output[:] = arrays[array]

    def _new(self, array: int, inputs: list[Array]) -> Array:
        return self.memory(math.prod(self.phases.shapes[array]), inputs)

    def _solve(
        self, together: list[Solve], arrays: dict[int, Array], inputs: list[Array], factored: set[tuple]
    ) -> None:
        """Solve systems of one matrix with the columns of all their right-hand sides at once."""
        first, shapes = together[0], [self.phases.shapes[solve.right] for solve in together]
        key = _key(first)
        solver = self.solvers[key]
        if key in self._broken:
            raise self._broken[key]
        if key not in factored and first.values not in self.phases.known:
            solver.factor(on_host(arrays[first.values]))
            factored.add(key)
        parts = [on_host(arrays[s.right]).reshape(shape) for s, shape in zip(together, shapes, strict=True)]
        right = parts[0] if len(parts) == 1 else np.column_stack(parts)
        if not first.system.may_be_singular:  # SciPy's functions take anything
            _check(right, solver)
        x = solver.solve(right, first.system.is_transposed, first.system.largest_residual)
        ends = np.cumsum([math.prod(shape[1:]) for shape in shapes])
        found = [x] if len(parts) == 1 else np.split(x, ends[:-1], axis=1)
        for solve, columns in zip(together, found, strict=True):
            target = arrays[solve.solution] = self._new(solve.solution, inputs)
            target[:] = np.asarray(columns.reshape(-1), self.dtype, like=target)


def _of_one_matrix(phase: Phase) -> list[list[Solve]]:
    """The systems of a phase, those together that need the same factor in the same way."""
    found: dict[tuple, list[Solve]] = {}
    for solve in phase.solves:
        how = _key(solve), solve.system.is_transposed, solve.system.largest_residual
        found.setdefault(how, []).append(solve)
    return list(found.values())


def _dropped(phases: Phases) -> list[list[int]]:
    """By phase, the arrays that nothing needs after it."""
    last: dict[int, int] = {}
    for number, phase in enumerate(phases.phases):
        used = (a for solve in phase.solves for a in (solve.values, solve.right, solve.solution))
        last.update(dict.fromkeys((*phase.reads, *phase.writes, *used), number))
    found: list[list[int]] = [[] for _ in phases.phases]
    for array in last.keys() - {*phases.outputs, *phases.known}:
        found[last[array]].append(array)
    return found


def _key(solve: Solve) -> tuple:
    """Equal for systems that share a factor."""
    return solve.system.matrix_key, solve.values


def _solvers(phases: Phases, threads: int) -> dict[tuple, LinearSolver]:
    """One for each matrix, analysed."""
    found: dict[tuple, LinearSolver] = {}
    for solve in phases.solves:
        key = _key(solve)
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
