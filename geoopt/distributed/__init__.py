"""One mesh over many ranks: MPI brings values of neighbours, PETSc adds, stores and solves.

    mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    program = geoopt.distributed.compile(cotan_laplacian, mesh, mesh.V, mesh.F)
    L, M = program(mesh.V)                     # matrices of PETSc's

Names are imported from their homes when they are first asked for: `division` and `statistics` need no MPI.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from .fields import Field as Field
    from .mesh import Mesh as Mesh
    from .mesh import partition as partition
    from .minimum import Minimum as Minimum
    from .minimum import newton as newton
    from .program import Program as Program
    from .program import compile as compile
    from .statistics import Statistics as Statistics

_HOMES = {
    "Field": "fields",
    "Mesh": "mesh",
    "Minimum": "minimum",
    "Program": "program",
    "Statistics": "statistics",
    "compile": "program",
    "newton": "minimum",
    "partition": "mesh",
}

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
