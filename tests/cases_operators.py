"""Every operator with arguments of a given size: what all devices are tested on."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from geoopt import meshes, operators

from .conftest import with_unreferenced

RNG = np.random.default_rng(5)


def of_surface(name):
    """An operator of (V, F), on a surface with boundaries, two components and vertices without faces."""
    return getattr(operators, name), with_unreferenced()


def arap(name):
    V, F = meshes.bumpy(56)
    P = V * [1, 1.2, 0.9] + 0.1 * np.sin(3 * V[:, ::-1])
    function, *rims = name.split(" with ")
    return getattr(operators, function), (P, operators.arap_mesh(V, F), bool(rims))


def cloth(name):
    V, F = meshes.cloth(200)
    x = V * [1.05, 0.97, 1.02] + 0.02 * RNG.normal(size=V.shape)
    state = {"cloth_forces": (x, 0.1 * V), "cloth_system": (x, 0.1 * V, 0.05), "stretch_shear_energy": (x,)}[name]
    return getattr(operators, name), (*state, operators.cloth(V, F))


def solving(name):
    """An operator that solves linear systems, on a surface with boundaries."""
    V, F = meshes.cloth(90)
    V = V + 0.05 * RNG.normal(size=V.shape)
    held, places = np.array([0, 50, len(V) - 1]), RNG.normal(size=(3, 2))
    arguments = {
        "harmonic": (held, places),
        "biharmonic": (held, places, 2),
        "heat_distances": ([40, 41],),
        "integrate_gradient": (RNG.normal(size=(len(F), 3)),),
        "lscm": (held, places),
        "mean_curvature_flow": (0.01,),
    }[name]
    return getattr(operators, name.removeprefix("bi")), (V, F, *arguments)


def steps(name):
    """A whole step of a simulation."""
    V, F = meshes.cloth(60)
    x = V * [1.05, 0.97, 1.02] + 0.02 * RNG.normal(size=V.shape)
    if name == "cloth_step":
        return operators.cloth_step, (x, 0.1 * V, 0.05, operators.cloth(V, F), [0, 3])
    return operators.arap_step, (x, operators.arap_mesh(V, F), np.array([0, 3, 9]), V[[0, 3, 9]])


def lengths(name):
    V, F = meshes.bumpy(56)
    return getattr(operators, name), (operators.edge_lengths(V, F), *([F] if "laplacian" in name else []))


def matrices(name):
    return getattr(operators, name), (np.eye(3) + RNG.normal(size=(20, 3, 3)),)


def products(name):
    """L, a symmetric pattern of uneven rows, times itself, or times columns."""
    L = sp.csr_array(operators.cotan_laplacian(*meshes.cloth(40))[0])
    function = {"L²": lambda L: L @ L, "L³": lambda L: L @ L @ L, "L V": lambda L, V: L @ V}[name]
    return function, (L, *([RNG.normal(size=(L.shape[1], 3))] if name == "L V" else []))


CASES = {
    **dict.fromkeys(("cotan_laplacian", "mass_matrix", "dihedral_angles", "edge_lengths", "face_areas"), of_surface),
    **dict.fromkeys(("vertex_normals", "face_normals", "gradient", "divergence"), of_surface),
    "dual_laplacian": lambda name: (operators.dual_laplacian, meshes.tetrahedral_ball(60)),
    **dict.fromkeys(("arap_rhs", "arap_energy", "arap_rhs with rims", "arap_energy with rims"), arap),
    **dict.fromkeys(("cloth_forces", "cloth_system", "stretch_shear_energy"), cloth),
    **dict.fromkeys(("cotan_laplacian_intrinsic", "face_areas_intrinsic"), lengths),
    **dict.fromkeys(("svd3", "polar_rotation"), matrices),
    **dict.fromkeys(("L²", "L³", "L V"), products),
}

SOLVING = {  # these are several programs each, with linear systems between them
    **dict.fromkeys(("harmonic", "biharmonic", "heat_distances", "integrate_gradient"), solving),
    **dict.fromkeys(("lscm", "mean_curvature_flow"), solving),
    **dict.fromkeys(("arap_step", "cloth_step"), steps),
}


def case(name):
    """A function, and its arguments."""
    return (CASES | SOLVING)[name](name)


def variables(arguments) -> list:
    """The arguments that vary: floats, arrays of them, and sparse matrices."""
    return [
        a for a in arguments if sp.issparse(a) or ((np.isscalar(a) or isinstance(a, np.ndarray)) and _is_float(a))
    ]  # fmt: skip


def _is_float(value) -> bool:
    return np.issubdtype(np.asarray(value).dtype, np.floating)
