"""`compile`: a function of a mesh as a program of all ranks, each of which computes its share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..options import Options
from ..signature import Argument, ordered
from ..trace import Fixed, argument_names, numbers_of
from ..trace.results import mapped
from .fields import Field, Record
from .halo import Halo
from .inputs import Common, Input, OfField, OfSolution
from .krylov import Krylov
from .laws import Way
from .mesh import Mesh
from .ranks import cleaned
from .replay import MATRIX, RIGHT
from .stages import Known, Stage, Workshop, tried

RINGS = 4


class Program:
    """Recomputes a function's result on all ranks, for new values of its variables; from `compile`.

    Called by all ranks with the variables alone, in order or by name: fields, the rank's own rows of them (n, ...) as
    an array or a vector of PETSc's, and numbers. Gives the function's result, with PETSc's matrices and vectors where
    that has sparse matrices and arrays, and floats for numbers. These objects are the program's: the next call writes
    into them. Rows of one vertex (element) lie side by side, rank by rank; `Mesh.gather` brings them to rank 0.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> laplacian = geoopt.distributed.compile(geoopt.operators.cotan_laplacian, mesh, mesh.V, mesh.F)
    >>> L, M = map(mesh.gather, laplacian(mesh.V))  # scipy.sparse matrices on rank 0
    >>> np.allclose(L.toarray(), geoopt.operators.cotan_laplacian(V, F)[0].toarray())
    True
    """

    def __init__(
        self, name: str, stages: list[Stage], inputs: dict[str, Input], solvers: list[tuple[Krylov, OfSolution]]
    ):
        self._name, self._stages, self._inputs, self._solvers = name, stages, inputs, solvers
        self._arguments = [Argument(name, ()) for name in inputs]

    def __call__(self, *values: Any, **named: Any) -> Any:
        in_order = ordered(self._name, self._arguments, values, named)
        for given, value in zip(self._inputs.values(), in_order, strict=True):
            given.set(value)
        inputs, solutions = [*self._inputs.values()], [solution for _, solution in self._solvers]
        *before, last = self._stages
        for number, (stage, (krylov, solution)) in enumerate(zip(before, self._solvers, strict=True)):
            varying = stage.run([*solutions[:number], *inputs])
            found = varying | stage.constants
            solution.set(krylov.solve(found[MATRIX], found[RIGHT], MATRIX in varying).ravel())
        found = last.run([*solutions, *inputs]) | last.constants
        return mapped(last.function.form, lambda name: found[name])

    def __repr__(self) -> str:
        return f"<geoopt.distributed.Program {self._name}({', '.join(self._inputs)})>"

    @property
    def ways(self) -> dict[str, Way]:
        """How each part of the result is put together, by what Python writes after the result to have it; those of
        linear systems have their number in front."""
        systems = [f"system {number}" for number in range(len(self._solvers))]
        stages = zip([*systems, ""], self._stages, strict=True)
        return {prefix + leaf.name: way for prefix, stage in stages for leaf, way in stage.found}

    @staticmethod
    def takes(argument: Any) -> bool:
        """Whether an argument of `compile` is a variable."""
        return argument.varies if isinstance(argument, Field) else numbers_of(argument) is not None

    @property
    def iterations(self) -> list[int]:
        """Of the latest solution of each linear system."""
        return [krylov.iterations for krylov, _ in self._solvers]


def compile(
    function: Callable,
    mesh: Mesh,
    *arguments: Any,
    rings: int = RINGS,
    solver: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Program:
    """Specialise a function for a distributed mesh. All ranks call.

    function : of positions, elements, and whatever else; it is the one that runs on a whole mesh
    arguments : what it is called with: `mesh.V`, `mesh.F`, fields (`Mesh.scatter`, `Mesh.field`), records
        (`Mesh.record`), and numbers and arrays that all ranks give alike. Fields of floats, numbers, float arrays and
        sparse matrices are variables; what `fixed` marks, and all others, are structure
    rings : of elements around a rank's own, on which what it computes may depend at most
    solver : PETSc's options for `geoopt.solve` within the function, without prefix; {"ksp_rtol": 1e-12}. By default
        conjugate gradients with algebraic multigrid, or GMRES where the matrix is not definite, to 1e-10. PETSc's
        options database counts, too, with prefix ``geoopt_``
    options : of the programs of each rank, see `Options`

    How each part of the result is put together (`Program.ways`) is tried on a small patch of the mesh, on which all
    ranks agree; the whole mesh, if it is small.
    Raises UnsupportedError for results that depend on the whole mesh at each vertex, as what is divided by a norm does,
    and what `geoopt.compile` raises, on all ranks.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> area = geoopt.distributed.compile(geoopt.operators.surface_area, mesh, mesh.V, mesh.F)
    >>> print(round(area(mesh.V), 2))
    11.67
    """
    cleaned(mesh.comm)
    names = argument_names(function, arguments)
    _check(mesh, names, arguments)
    label = getattr(function, "__name__", "the function")
    parts = list(tried(function, mesh.patch, arguments, rings, label))
    halo = mesh.halo(max(way.rings for _, found in parts for _, way in found))
    inputs = _inputs(names, arguments, halo)
    workshop = Workshop(halo, arguments, Known({f: halo.values(f) for a in arguments for f in _fields(a)}), options)
    stages: list[Stage] = []
    solvers: list[tuple[Krylov, OfSolution]] = []
    for until, found in parts:
        stages.append(workshop.stage(until, found, [*(solution for _, solution in solvers), *inputs.values()]))
        if until.needs:
            right = until.right(found)
            solvers.append((Krylov(mesh.comm, solver or {}), OfSolution(halo, right.rows, right.shape)))
    return Program(label, stages, inputs, solvers)


def _check(mesh: Mesh, names: list[str], arguments: tuple) -> None:
    """Arrays of the whole mesh are refused: each rank would take them for its own."""
    for name, value in zip(names, arguments, strict=True):
        inner = value.value if isinstance(value, Fixed) else value
        length = len(inner) if isinstance(inner, np.ndarray) and inner.ndim else 0
        if length in (mesh.n, mesh.m) and length > 4:
            what = f"argument {name!r} is an array of {length} rows, as many as the mesh has vertices or elements"
            raise ArgumentError(f"{what}; give mesh.V, mesh.F, or mesh.scatter(values), whose rows are shared out")


def _inputs(names: list[str], arguments: tuple, halo: Halo) -> dict[str, Input]:
    """Of the arguments that vary, by their names, with the values that are given."""
    found: dict[str, Input] = {}
    for name, value in zip(names, arguments, strict=True):
        is_field = isinstance(value, Field)
        if Program.takes(value):
            found[name] = OfField(name, halo, value.at, value.values.shape[1:]) if is_field else Common(value)
            found[name].set(value)
    return found


def _fields(argument: Any) -> Iterator[Field]:
    """The fields in an argument."""
    if isinstance(argument, Fixed):
        yield from _fields(argument.value)
    elif isinstance(argument, Record):
        for inner in argument.arguments:
            yield from _fields(inner)
    elif isinstance(argument, Field):
        yield argument
