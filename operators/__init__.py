"""Geometry operators, written as NumPy code on stacked small arrays.

They run unchanged on NumPy arrays, on CuPy arrays and through `geoopt.compile`.
"""

from .arap import ArapMesh as ArapMesh
from .arap import arap_energy as arap_energy
from .arap import arap_mesh as arap_mesh
from .arap import arap_rhs as arap_rhs
from .cloth import Cloth as Cloth
from .cloth import cloth as cloth
from .cloth_forces import cloth_forces as cloth_forces
from .cloth_forces import cloth_system as cloth_system
from .cloth_forces import stretch_shear_energy as stretch_shear_energy
from .cotan_laplacian import cotan_laplacian as cotan_laplacian
from .svd3 import polar_rotation as polar_rotation
from .svd3 import svd3 as svd3

__all__ = [
    "ArapMesh",
    "Cloth",
    "arap_energy",
    "arap_mesh",
    "arap_rhs",
    "cloth",
    "cloth_forces",
    "cloth_system",
    "cotan_laplacian",
    "polar_rotation",
    "stretch_shear_energy",
    "svd3",
]
