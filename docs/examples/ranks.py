"""A Poisson problem on a surface that many ranks share: mpiexec -n 4 python docs/examples/ranks.py --vertices 200000"""

import argparse
import time

import numpy as np
from mpi4py import MPI

import geoopt
import geoopt.distributed as gd
from geoopt.meshes import bumpy, load
from geoopt.operators import cotan_laplacian


def potential(V, F, charge, is_held):
    """What solves L u = M charge, with u = 0 where it is held. The function knows nothing of ranks."""
    L, M = cotan_laplacian(V, F)
    return geoopt.solve(L, M @ charge, fixed=is_held, values=0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", help="a file with triangles; else a mesh is generated")
    parser.add_argument("--vertices", type=int, default=200_000, help="of the generated mesh")
    parser.add_argument("--out", help="where u goes, at the vertices of the whole mesh (.npy)")
    given = parser.parse_args()
    comm = MPI.COMM_WORLD
    V = F = charge = is_held = None
    if comm.rank == 0:  # the others need not have the mesh
        V, F = (load(given.mesh) if given.mesh else bumpy(given.vertices))[:2]
        charge = np.sin(3 * V[:, 0])
        is_held = V[:, 2] < np.quantile(V[:, 2], 0.01)

    mesh = gd.partition(V, F)
    charge, is_held = mesh.scatter(charge), mesh.scatter(is_held)
    begun = time.perf_counter()
    program = gd.compile(potential, mesh, mesh.V, mesh.F, charge, is_held)
    prepared = time.perf_counter() - begun
    for stretch in (1.0, 1.1, 1.2):  # every rank moves its own vertices
        begun = time.perf_counter()
        u = program(mesh.V.values * [1.0, 1.0, stretch], charge)
        seconds = time.perf_counter() - begun
        if comm.rank == 0:
            print(f"stretched to {stretch}: {seconds:.3f} s, {program.iterations[0]} iterations")
    whole = mesh.gather(u)
    statistics = mesh.statistics()
    if comm.rank == 0:
        print(statistics)
        print(f"prepared in {prepared:.2f} s; u from {whole.min():.4f} to {whole.max():.4f}")
        if given.out:
            np.save(given.out, whole)


if __name__ == "__main__":
    main()
