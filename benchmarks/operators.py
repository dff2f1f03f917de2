"""All operators of `geoopt.operators`, and derivatives of its energies; NumPy and SciPy run the same code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import geoopt
from geoopt import meshes, operators

from .cloth_system import STEP, moving
from .records import Benchmark, Mesh, Work

STRUCTURE = ("ArapMesh", "Cloth", "arap_mesh", "cloth", "edges", "interior_edges")  # they compute nothing that varies
OF_SURFACES = (
    "cotan_laplacian", "mass_matrix", "gradient", "divergence", "vertex_normals", "face_normals", "face_areas",
    "edge_lengths", "dihedral_angles", "surface_area", "squared_mean_curvature",
)  # fmt: skip
WIDE = ("squared_mean_curvature", "arap_energy")  # each vertex reads all around it: Hessians are large
VOLUMES = ("neo_hookean_energy", "st_venant_kirchhoff_energy")


def works(mesh: Mesh, dtype: type) -> dict:
    """By the operators' names; energies have gradients and Hessians besides."""
    given = {
        **{name: partial(_of_surface, mesh) for name in OF_SURFACES},
        **{name: partial(_of_lengths, mesh) for name in ("cotan_laplacian_intrinsic", "face_areas_intrinsic")},
        **{name: partial(_of_map, mesh) for name in ("dirichlet_energy", "symmetric_dirichlet_energy")},
        **{name: partial(_of_rigid, mesh) for name in ("arap_rhs", "arap_energy")},
        **{name: partial(_of_cloth, mesh) for name in ("cloth_forces", "cloth_system", "stretch_shear_energy")},
        **{name: partial(_of_volume, mesh) for name in ("dual_laplacian", *VOLUMES)},
        **{name: partial(_of_matrices, mesh) for name in ("svd3", "polar_rotation")},
        **{name: partial(_of_boundary, mesh) for name in ("harmonic", "lscm", "integrate_gradient")},
        "heat_distances": partial(_of_sources, mesh),
        "mean_curvature_flow": lambda _: ((mesh[0],), (mesh[1], 1e-3)),
        "arap_step": partial(_of_held, mesh),
        "cloth_step": partial(_of_cloth, mesh),
        "bending_energy": partial(_of_bending, mesh),
        "spring_energy": partial(_of_springs, mesh),
    }
    found = {name: partial(_work, name, arguments, dtype) for name, arguments in given.items()}
    energies = {name: make for name, make in given.items() if name.endswith(("energy", "area", "curvature"))}
    return found | {
        f"{name}, derivatives": partial(_derivatives, name, arguments, dtype) for name, arguments in energies.items()
    }


def _work(name: str, arguments: Callable, dtype: type, key: str = "operator", of: Callable | None = None) -> Work:
    """Of some arguments those that are positions and the like vary: the first, and where there are more, these."""
    varying, fixed = arguments(name)
    varying = tuple(np.asarray(v, dtype) if np.ndim(v) else v for v in varying)
    function = partial(_with, of or getattr(operators, name), fixed)
    return Work(key, function, varying, varying, takes_function=True, tolerance=1e-7, single=2e-2)


def _with(function: Callable, fixed: tuple, *varying: Any) -> Any:
    return function(*varying, *fixed)


def _derivatives(name: str, arguments: Callable, dtype: type) -> Work:
    energy = getattr(operators, name)

    def derivatives(*given: Any) -> Any:
        slope = geoopt.gradient(energy)(*given)
        return slope if name in WIDE else (slope, geoopt.hessian(energy)(*given))

    return _work(name, arguments, dtype, "derivatives", derivatives)


# -- arguments: those that vary, and the structure after them ------------------------------------------------


def _deformed(x: np.ndarray) -> np.ndarray:
    return x * [1.1, 0.95, 1.05][: x.shape[1]] + 0.01 * np.sin(9 * x[:, ::-1])


def _of_surface(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    return mesh[:1], mesh[1:]


def _of_lengths(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    return (operators.edge_lengths(*mesh),), mesh[1:] if "laplacian" in name else ()


def _of_map(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    """Of a cloth, which is flat: maps to the plane have no flips."""
    V, F = meshes.cloth(len(mesh[0]))
    return (_deformed(V[:, :2]),), (V, F)


def _of_rigid(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    return (_deformed(mesh[0]),), (operators.arap_mesh(*mesh),)


def _of_cloth(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    V, F = meshes.cloth(len(mesh[0]))
    x, v = moving(V, np.float64)
    of_step = x, v, STEP
    varying = {"cloth_system": of_step, "cloth_step": of_step, "cloth_forces": (x, v)}.get(name, (x,))
    return varying, (operators.cloth(V, F),)


def _of_held(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    """Of a rigid shape, a few vertices of which are held."""
    V, F = mesh
    held = np.arange(0, len(V), 50)
    return (_deformed(V),), (operators.arap_mesh(V, F), held, V[held])


def _of_sources(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    return (mesh[0],), (mesh[1], np.array([0, len(mesh[0]) // 2]))


def _of_boundary(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    """On a cloth, with values at two of its vertices."""
    V, F = meshes.cloth(len(mesh[0]))
    if name == "integrate_gradient":
        return (moving(V, np.float64)[0],), (F, np.random.default_rng(0).normal(size=(len(F), 3)))
    return (moving(V, np.float64)[0],), (F, np.array([0, len(V) - 1]), np.eye(2))


def _of_volume(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    V, T = meshes.tetrahedral_ball(len(mesh[0]))
    return ((_deformed(V),), (V, T, 2.0, 3.0)) if name in VOLUMES else ((V,), (T,))


def _of_matrices(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    return (np.eye(3) + np.random.default_rng(0).normal(scale=0.3, size=(len(mesh[0]), 3, 3)),), ()


def _of_bending(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    return (_deformed(mesh[0]),), mesh


def _of_springs(mesh: Mesh, name: str) -> tuple[tuple, tuple]:
    V, F = mesh
    E = operators.edges(F)
    return (_deformed(V),), (E, np.linalg.norm(V[E[:, 1]] - V[E[:, 0]], axis=1), 3.0)


BENCHMARK = Benchmark(
    title="Every operator, and derivatives of every energy",
    paper="nothing: these are what geoopt comes with",
    works=works,
    peers=("numpy",),
    reference="numpy",
    vertices=20_000,
    full=("--vertices 20000",),
    small=("--vertices 2500",),
    compared=1_500,
)
