"""Geometry operators, written as NumPy code on stacked small arrays.

They run unchanged on NumPy arrays, on CuPy arrays and through `geoopt.compile`.
"""

from .arap import ArapMesh as ArapMesh
from .arap import arap_energy as arap_energy
from .arap import arap_mesh as arap_mesh
from .arap import arap_rhs as arap_rhs
from .arap import arap_step as arap_step
from .bending_energy import bending_energy as bending_energy
from .cloth import Cloth as Cloth
from .cloth import cloth as cloth
from .cloth_forces import cloth_forces as cloth_forces
from .cloth_forces import cloth_step as cloth_step
from .cloth_forces import cloth_system as cloth_system
from .cloth_forces import stretch_shear_energy as stretch_shear_energy
from .cotan_laplacian import cotan_laplacian as cotan_laplacian
from .cotan_laplacian_intrinsic import cotan_laplacian_intrinsic as cotan_laplacian_intrinsic
from .dihedral_angles import dihedral_angles as dihedral_angles
from .divergence import divergence as divergence
from .dual_laplacian import dual_laplacian as dual_laplacian
from .edge_lengths import edge_lengths as edge_lengths
from .elastic_energies import neo_hookean_energy as neo_hookean_energy
from .elastic_energies import st_venant_kirchhoff_energy as st_venant_kirchhoff_energy
from .face_areas import face_areas as face_areas
from .face_areas_intrinsic import face_areas_intrinsic as face_areas_intrinsic
from .face_normals import face_normals as face_normals
from .gradient import gradient as gradient
from .harmonic import harmonic as harmonic
from .heat_distances import heat_distances as heat_distances
from .integrate_gradient import integrate_gradient as integrate_gradient
from .lscm import lscm as lscm
from .mass_matrix import mass_matrix as mass_matrix
from .mean_curvature_flow import mean_curvature_flow as mean_curvature_flow
from .polar_rotation import polar_rotation as polar_rotation
from .spring_energy import spring_energy as spring_energy
from .surface_energies import dirichlet_energy as dirichlet_energy
from .surface_energies import squared_mean_curvature as squared_mean_curvature
from .surface_energies import surface_area as surface_area
from .svd3 import svd3 as svd3
from .symmetric_dirichlet_energy import symmetric_dirichlet_energy as symmetric_dirichlet_energy
from .topology import edges as edges
from .topology import interior_edges as interior_edges
from .vertex_normals import vertex_normals as vertex_normals

__all__ = [
    "ArapMesh",
    "Cloth",
    "arap_energy",
    "arap_mesh",
    "arap_rhs",
    "arap_step",
    "bending_energy",
    "cloth",
    "cloth_forces",
    "cloth_step",
    "cloth_system",
    "cotan_laplacian",
    "cotan_laplacian_intrinsic",
    "dihedral_angles",
    "dirichlet_energy",
    "divergence",
    "dual_laplacian",
    "edge_lengths",
    "edges",
    "face_areas",
    "face_areas_intrinsic",
    "face_normals",
    "gradient",
    "harmonic",
    "heat_distances",
    "integrate_gradient",
    "interior_edges",
    "lscm",
    "mass_matrix",
    "mean_curvature_flow",
    "neo_hookean_energy",
    "polar_rotation",
    "spring_energy",
    "squared_mean_curvature",
    "st_venant_kirchhoff_energy",
    "stretch_shear_energy",
    "surface_area",
    "svd3",
    "symmetric_dirichlet_energy",
    "vertex_normals",
]
