"""
Poses by as-rigid-as-possible deformation
=========================================

Two parts of a torus are held and moved; the rest follows as rigidly as it can. An iteration fits a rotation to each
vertex, and solves one linear system. It is one program. The matrix is the same for all poses, so it is factored while
the program is prepared.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation
from shaded import PLAIN, show

import geoopt
from geoopt.meshes import torus
from geoopt.operators import arap_energy, arap_mesh, arap_step

VERTICES = int(os.environ.get("GALLERY_VERTICES", 5_000))
ITERATIONS = 150

V, F = torus(VERTICES, radius=2.0, tube=0.6)
mesh = arap_mesh(V, F)
left, right = (np.flatnonzero(side * V[:, 0] > 2.1) for side in (-1, 1))
held = np.concatenate([left, right])
step = geoopt.compile(arap_step, V, mesh, held, V[held], rims=True)
energy = geoopt.compile(arap_energy, V, mesh, rims=True)


def pose(move, turn):
    """The surface when the right part moves [m] and turns [degrees], and the energies on the way there."""
    middle = V[right].mean(axis=0)
    turned = (V[right] - middle) @ Rotation.from_rotvec(turn, degrees=True).as_matrix().T
    places = np.concatenate([V[left], turned + middle + move])
    P, energies = V, []
    for _ in range(ITERATIONS):
        P = step(P, places)
        energies.append(energy(P))
    return P, energies


poses = {
    "twisted": pose([0, 0, 0], [90, 0, 0]),
    "bent": pose([-0.8, 0, 1.6], [0, -80, 0]),
    "stretched": pose([1.2, 0, 0], [0, 0, 0]),
}

# %%
# The three poses; what is held is orange.

colours = np.tile(PLAIN, (len(V), 1))
colours[held] = 0.9, 0.55, 0.25
figure, row = plt.subplots(1, 3, figsize=(11, 3.2), sharex=True, sharey=True, layout="constrained")
for axes, (name, (P, energies)) in zip(row, poses.items(), strict=True):
    show(axes, P, F, colours, look=(-70, 40))
    axes.set_title(f"{name}: energy {energies[-1]:.2f} m²")
axes.set(xlim=(-2.7, 3.8), ylim=(-2.2, 2.6))
plt.show()
