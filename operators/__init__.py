"""Geometry operators, written as NumPy code on stacked small arrays.

They run unchanged on NumPy arrays, on CuPy arrays and through `geoopt.compile`.
"""

from .cotan_laplacian import cotan_laplacian as cotan_laplacian
from .cotan_laplacian_intrinsic import cotan_laplacian_intrinsic as cotan_laplacian_intrinsic
from .dihedral_angles import dihedral_angles as dihedral_angles
from .divergence import divergence as divergence
from .dual_laplacian import dual_laplacian as dual_laplacian
from .edge_lengths import edge_lengths as edge_lengths
from .face_areas import face_areas as face_areas
from .face_areas_intrinsic import face_areas_intrinsic as face_areas_intrinsic
from .face_normals import face_normals as face_normals
from .gradient import gradient as gradient
from .mass_matrix import mass_matrix as mass_matrix
from .topology import edges as edges
from .topology import interior_edges as interior_edges
from .vertex_normals import vertex_normals as vertex_normals

__all__ = [
    "cotan_laplacian",
    "cotan_laplacian_intrinsic",
    "dihedral_angles",
    "divergence",
    "dual_laplacian",
    "edge_lengths",
    "edges",
    "face_areas",
    "face_areas_intrinsic",
    "face_normals",
    "gradient",
    "interior_edges",
    "mass_matrix",
    "vertex_normals",
]
