"""``geoopt operator``, ``geoopt view`` and ``geoopt coverage``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..errors import ArgumentError, GeooptError, InternalError
from ..inputs import mesh_of
from ..output import refuse_existing, write_whole
from .options import DEVICES, Force, MeshFile


def cotan(
    mesh: Annotated[Path, typer.Argument(help="Triangle mesh (OBJ, PLY, OFF, STL).")],
    out: Annotated[Path, typer.Option(help="Where L goes (.npz); M goes beside it as NAME-mass.npz.")],
    force: Force = False,
) -> None:
    """Cotangent Laplacian L and barycentric mass matrix M, written with scipy.sparse.save_npz."""
    import scipy.sparse as sp

    if out.suffix != ".npz":
        raise ArgumentError(f"{out}: the output must end in .npz")
    mass = out.with_name(f"{out.stem}-mass.npz")
    refuse_existing([out, mass], force)
    V, F, _ = mesh_of(mesh, 0)
    from ..operators import cotan_laplacian
    from ..pipeline import compile

    L, M = compile(cotan_laplacian, V, F)(V)
    for path, matrix in ((out, L), (mass, M)):
        write_whole(path, lambda file, matrix=matrix: sp.save_npz(file, matrix))
        typer.echo(f"{path}: {matrix.shape[0]} × {matrix.shape[1]}, {matrix.nnz} values")


def view(
    function: Annotated[
        str, typer.Argument(help="A name in geoopt.operators, or MODULE:FUNCTION, of (V, F) or (V, T).")
    ],
    mesh: MeshFile = None,
    stage: Annotated[
        str, typer.Option(help="trace, lift, decompose, group, harvest, simplify, share, place, ..., code, assemble.")
    ] = "harvest",
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 100,
    device: Annotated[str, typer.Option(help=DEVICES)] = "cpu",
) -> None:
    """Print what one stage of the compiler gives for a function of a mesh."""
    from ..views import view

    called, names = _function(function)
    V, F, _ = mesh_of(mesh, vertices, corners=4 if names[1:] == ["T"] else 3)
    try:
        shown = view(called, V, F, stage=stage, device=device)
    except (GeooptError, InternalError):
        raise
    except Exception as error:  # of the function that was named
        raise ArgumentError(f"{function} fails on this mesh: {type(error).__name__}: {error}") from error
    typer.echo(shown)


def coverage(
    of: Annotated[str, typer.Argument(help="A module, or a part of the names; without it all functions.")] = "",
    refused: Annotated[bool, typer.Option("--refused", help="Only those that are refused.")] = False,
) -> None:
    """List NumPy's, SciPy's and Python's functions: which traced code may call, and what to write instead of others."""
    from ..coverage import chosen, printed

    printed(chosen(of, refused), Console())


def _function(name: str) -> tuple[Callable, list[str]]:
    """A function of a mesh, by its name, and the names of its arguments."""
    module, _, attribute = name.rpartition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as ``python -m`` does: modules of the current folder
    try:
        found = getattr(importlib.import_module(module or "geoopt.operators"), attribute)
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"{name}: {error}; give an operator's name or MODULE:FUNCTION") from error
    try:
        return found, list(inspect.signature(found).bind(None, None).arguments)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {error}; give a function of positions and elements, (V, F) or (V, T)") from error
