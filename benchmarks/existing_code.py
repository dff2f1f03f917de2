"""Functions of gpytoolbox, as they are installed, compiled and run by NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable

from .records import Benchmark, Mesh, of_positions


def works(mesh: Mesh, dtype: type) -> dict:
    import gpytoolbox

    functions: dict[str, Callable] = {
        "cotangent Laplacian": gpytoolbox.cotangent_laplacian,
        "mass matrix": lambda V, F: gpytoolbox.massmatrix(V, F, type="barycentric"),
        "gradient": gpytoolbox.grad,
        "vertex normals": gpytoolbox.per_vertex_normals,
        "dihedral angles": gpytoolbox.dihedral_angles,
    }
    return of_positions(functions, mesh, dtype)


BENCHMARK = Benchmark(
    title="Code of others, unchanged",
    paper="nothing: its programs are written with its number type",
    works=works,
    mesh="bumpy",
    peers=("numpy",),
    reference="numpy",
    vertices=100_000,
    full=("--vertices 100000",),
    small=("--vertices 2500",),
)
