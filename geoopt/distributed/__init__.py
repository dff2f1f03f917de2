"""One mesh over many ranks: MPI brings values of neighbours, PETSc adds, stores and solves.

mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
program = geoopt.distributed.compile(cotan_laplacian, mesh, mesh.V, mesh.F)
L, M = program(mesh.V)                     # matrices of PETSc's
"""

from .fields import Field as Field
from .mesh import Mesh as Mesh
from .mesh import partition as partition
from .program import Program as Program
from .program import compile as compile
