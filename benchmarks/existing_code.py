"""Functions of other libraries, as they are installed, compiled and run by NumPy and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np

from geoopt import meshes
from geoopt.operators import edges

from .records import Benchmark, Mesh, Work

LOOPS = 2_000  # code that loops in Python over elements gets one per so many vertices
Given = tuple[Callable, tuple]  # a function, and its arguments, which vary


def works(mesh: Mesh, dtype: type) -> dict[str, Callable[[], Work]]:
    """Those of the libraries that are installed."""
    missing = left_out()
    return {name: partial(_work, name, mesh, dtype) for name in WORKS if name not in missing}


def left_out() -> dict[str, str]:
    """Works of libraries that are not installed, and how they are."""
    packages = {package for package, _ in WORKS.values() if find_spec(package) is None}
    return {name: f"pip install {PIP.get(p, p)}" for name, (p, _) in WORKS.items() if p in packages}


def _work(name: str, mesh: Mesh, dtype: type) -> Work:
    function, arguments = WORKS[name][1](mesh)
    arguments = tuple(np.asarray(a, dtype) if np.ndim(a) else a for a in arguments)
    tolerance = 1e-6 if name in ILL_CONDITIONED else Work.tolerance
    return Work("sparse", function, arguments, arguments, takes_function=True, tolerance=tolerance)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 1.5, shape)


# -- triangles and tetrahedra ---------------------------------------------------------------------------------


def of_gpytoolbox(name: str, mesh: Mesh, **how: str) -> Given:
    import gpytoolbox

    function, F = getattr(gpytoolbox, name), mesh[1]
    return lambda V: function(V, F, **how), mesh[:1]


def held_by_gpytoolbox(solve: str, matrix: str, mesh: Mesh) -> Given:
    """A function that solves with a matrix of the mesh, and two vertices that are held."""
    import gpytoolbox

    solved, made = getattr(gpytoolbox, solve), getattr(gpytoolbox, matrix)
    (V, F), held = mesh, np.array([0, len(mesh[0]) // 2])
    return lambda V, values: solved(made(V, F), k=held, y=values), (V, random(2))


def heat_of_lapy(mesh: Mesh) -> Given:
    from lapy import TriaMesh, heat

    return lambda V: heat.diffusion(TriaMesh(V, mesh[1]), 0), mesh[:1]


def distances_of_lapy(mesh: Mesh) -> Given:
    from lapy import TriaMesh, diffgeo, heat

    def distances(V):
        surface = TriaMesh(V, mesh[1])
        return diffgeo.compute_geodesic_f(surface, heat.diffusion(surface, 0))

    return distances, mesh[:1]


def poisson_of_lapy(mesh: Mesh) -> Given:
    from lapy import Solver, TriaMesh

    V, F = mesh
    held = np.array([0, len(V) // 2])

    def potential(V, density):
        return Solver(TriaMesh(V, F), lump=True).poisson(density, dtup=(held, np.zeros(2)))

    return potential, (V, random(len(V)))


def laplacian_of_lapy(mesh: Mesh) -> Given:
    from lapy import Solver, TriaMesh

    def matrices(V):
        solver = Solver(TriaMesh(V, mesh[1]))
        return solver.stiffness, solver.mass

    return matrices, mesh[:1]


def tetrahedra_of_lapy(mesh: Mesh) -> Given:
    from lapy import Solver, TetMesh

    V, T = meshes.tetrahedral_ball(len(mesh[0]))

    def matrices(V):
        solver = Solver(TetMesh(V, T))
        return solver.stiffness, solver.mass

    return matrices, (V,)


def orientation_of_pyfm(mesh: Mesh) -> Given:
    from pyFM.mesh import geometry

    def operator(V, field):
        areas = geometry.compute_vertex_areas(V, mesh[1])
        return geometry.get_orientation_op(field, V, mesh[1], geometry.compute_normals(V, mesh[1]), areas)

    return operator, (mesh[0], random(len(mesh[1]), 3))


def inertia_of_trimesh(mesh: Mesh) -> Given:
    from trimesh.triangles import mass_properties

    def properties(V):
        found = mass_properties(V[mesh[1]])
        return found.center_mass, found.inertia, found.volume

    return properties, mesh[:1]


def subdivision_of_trimesh(mesh: Mesh) -> Given:
    from trimesh.remesh import subdivide_loop

    return lambda V: subdivide_loop(V, mesh[1])[0], mesh[:1]


def laplacian_of_potpourri3d(mesh: Mesh) -> Given:
    from potpourri3d import cotan_laplacian

    return lambda V: cotan_laplacian(V, mesh[1]), mesh[:1]


# -- mechanics and physics --------------------------------------------------------------------------------------


def force_densities_of_compas(mesh: Mesh) -> Given:
    from compas_fd.solvers.fd_numerical_data import FDNumericalData

    lines = [tuple(edge) for edge in edges(mesh[1]).tolist()]
    held = list(range(0, len(mesh[0]), 10))

    def matrices(densities):
        data = FDNumericalData.from_params(mesh[0], held, lines, densities)
        return data.A, data.Ai, data.Af

    return matrices, (random(len(lines)),)


def rubber_of_felupe(mesh: Mesh) -> Given:
    import felupe

    cube = felupe.Cube(n=2 + round((len(mesh[0]) / 10) ** (1 / 3)))
    region, rubber = felupe.RegionHexahedron(cube), felupe.NeoHooke(mu=1.0, bulk=2.0)

    def forces(displacement):
        field = felupe.FieldContainer([felupe.Field(region, dim=3, values=displacement)])
        return felupe.SolidBody(rubber, field).assemble.vector()

    return forces, (0.01 * random(cube.npoints, 3),)


def plate_of_solidspy(mesh: Mesh) -> Given:
    from solidspy import assemutil, preprocesor

    side = 3 + math.isqrt(len(mesh[0]) // LOOPS)
    x, y, found = preprocesor.rect_grid(1.0, 1.0, side, side, eletype=1)
    elements, held = found.astype(int), np.where(x == x.min(), -1, 0)
    numbers, _, count = assemutil.DME(np.stack([held, held], axis=1), elements)
    nodes = np.stack([np.arange(len(x)), x, y], axis=1)

    def stiffness_and_mass(nodes, materials):
        return assemutil.assembler(elements, materials, nodes, count, numbers)

    return stiffness_and_mass, (nodes, np.array([[1.5, 0.3, 1.1]]))


def frame_of_pystran(mesh: Mesh) -> Given:
    from pystran import model, section

    joints = np.cumsum(random(10 + len(mesh[0]) // LOOPS, 2), axis=0)

    def stiffness(joints, moments):
        frame = model.create(2)
        for i, place in enumerate(joints):
            model.add_joint(frame, i, place)
        for i, moment in enumerate(moments):
            beam = section.beam_2d_section(f"beam {i}", E=1.2, A=1.0, I=moment, rho=1.0)
            model.add_beam_member(frame, i, (i, i + 1), beam)
        model.number_dofs(frame)
        return model._build_stiffness_matrix(frame)

    return stiffness, (joints, random(len(joints) - 1))


def flow_of_discretize(mesh: Mesh) -> Given:
    from discretize import TensorMesh

    side = math.isqrt(len(mesh[0]))
    grid = TensorMesh([side, side])

    def resistances(conductivities):
        faces = grid.get_face_inner_product(conductivities, invert_model=True, invert_matrix=True)
        return grid.face_divergence @ faces @ grid.face_divergence.T

    return resistances, (random(side * side),)


def curvilinear_of_discretize(mesh: Mesh) -> Given:
    from discretize import CurvilinearMesh
    from discretize.utils import example_curvilinear_grid

    side = math.isqrt(len(mesh[0]))
    return lambda x, y: CurvilinearMesh([x, y]).face_divergence, tuple(
        example_curvilinear_grid([side, side + 1], "rotate")
    )


def poses_of_pytransform3d(mesh: Mesh) -> Given:
    from pytransform3d.trajectories import transforms_from_pqs

    return transforms_from_pqs, (random(len(mesh[0]), 7),)


def magnets_of_magpylib(mesh: Mesh) -> Given:
    from magpylib.core import magnet_cuboid_Bfield

    count = len(mesh[0])
    return magnet_cuboid_Bfield, (3 * mesh[0], random(count, 3) / 2, random(count, 3))


PIP = {"pyFM": "pyfmaps", "solidspy": "--no-deps solidspy"}  # it asks for a meshio of 2018, for its preprocessor alone
HARMONIC = partial(held_by_gpytoolbox, "fixed_dof_solve", "cotangent_laplacian")
BIHARMONIC = partial(held_by_gpytoolbox, "min_quad_with_fixed", "biharmonic_energy")
WORKS: dict[str, tuple[str, Callable[[Mesh], Given]]] = {
    "cotangent Laplacian": ("gpytoolbox", partial(of_gpytoolbox, "cotangent_laplacian")),
    "mass matrix": ("gpytoolbox", partial(of_gpytoolbox, "massmatrix", type="barycentric")),
    "gradient": ("gpytoolbox", partial(of_gpytoolbox, "grad")),
    "vertex normals": ("gpytoolbox", partial(of_gpytoolbox, "per_vertex_normals")),
    "dihedral angles": ("gpytoolbox", partial(of_gpytoolbox, "dihedral_angles")),
    "Hodge star of edges": ("gpytoolbox", partial(of_gpytoolbox, "dec_h1")),
    "harmonic function, gpytoolbox": ("gpytoolbox", HARMONIC),
    "biharmonic function, gpytoolbox": ("gpytoolbox", BIHARMONIC),
    "heat, LaPy": ("lapy", heat_of_lapy),
    "distances by heat, LaPy": ("lapy", distances_of_lapy),
    "Poisson's problem, LaPy": ("lapy", poisson_of_lapy),
    "Laplacian and mass, LaPy": ("lapy", laplacian_of_lapy),
    "Laplacian and mass of tetrahedra, LaPy": ("lapy", tetrahedra_of_lapy),
    "orientation operator, pyFM": ("pyFM", orientation_of_pyfm),
    "mass properties, trimesh": ("trimesh", inertia_of_trimesh),
    "Loop subdivision, trimesh": ("trimesh", subdivision_of_trimesh),
    "cotangent Laplacian, potpourri3d": ("potpourri3d", laplacian_of_potpourri3d),
    "force density matrices, COMPAS": ("compas_fd", force_densities_of_compas),
    "forces of rubber, FElupe": ("felupe", rubber_of_felupe),
    "stiffness and mass in loops, SolidsPy": ("solidspy", plate_of_solidspy),
    "stiffness of a frame, pystran": ("pystran", frame_of_pystran),
    "flow on a grid, discretize": ("discretize", flow_of_discretize),
    "divergence on a curvilinear grid, discretize": ("discretize", curvilinear_of_discretize),
    "poses, pytransform3d": ("pytransform3d", poses_of_pytransform3d),
    "fields of magnets, Magpylib": ("magpylib", magnets_of_magpylib),
}
ILL_CONDITIONED = ("biharmonic function, gpytoolbox",)  # the square of a Laplacian
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
    left_out=left_out,
)
