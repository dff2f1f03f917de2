"""
A shell that buckles
====================

A thin dome is pushed in at its top. First the dent is round; deeper, its rim breaks into corners. The energy of
stretching and of bending is minimised by Newton's method for each depth, from the shape before. A `geoopt.Minimizer`
compiles the energy and its derivatives once. Where corners appear the energy is nearly flat in many directions, and
minimising takes most iterations; here it ends after 60, converged or not.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from shaded import show

import geoopt
from geoopt.meshes import icosphere
from geoopt.operators import bending_energy, cloth, face_areas, stretch_shear_energy
from geoopt.operators.topology import boundary_edges

VERTICES = int(os.environ.get("GALLERY_VERTICES", 6_000))  # of the whole sphere
DEPTHS = np.linspace(0, 0.42, 7)[1:]  # m
STRETCH, SHEAR, BENDING = 1000.0, 400.0, 2e-3  # N/m, N/m, J

V, F = icosphere(VERTICES)
V = V[:, [2, 1, 0]] * [1, 1, -1]
F = F[(V[F, 2] > 0.55).all(axis=1)]
used, F = np.unique(F, return_inverse=True)
V, F = V[used], F.reshape(-1, 3)
rim, top = np.unique(boundary_edges(F)), np.argmax(V[:, 2])
V[rim, :2] *= np.sqrt(1 - 0.55**2) / np.linalg.norm(V[rim, :2], axis=1, keepdims=True)  # a circle
V[rim, 2] = 0.55
per_area = 1 / face_areas(V, F).mean()
rest = cloth(V, F, stretch=STRETCH * per_area, shear=SHEAR * per_area)


def energy(x):
    return stretch_shear_energy(x, rest) + bending_energy(x, V, F, BENDING)


settle = geoopt.Minimizer(energy, V, fixed=np.append(rim, top), tolerance=1e-5, iterations=60)
random = np.random.default_rng(0)
shapes, energies = [], []
for depth in DEPTHS:
    x = (shapes[-1] if shapes else V) + 1e-3 * random.normal(size=V.shape)  # nothing is perfectly round
    x[rim], x[top] = V[rim], V[top] - [0, 0, depth]
    found = settle(x)
    shapes.append(found.x)
    energies.append(found.energies[-1])
    print(f"{depth:.2f} m: {energies[-1]:.4f} J; {found.iterations} iterations, {found.reason}")

# %%
# Three shapes, coloured by how far each vertex has moved.

figure, row = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for axes, i in zip(row, (1, 3, -1), strict=True):
    moved = np.linalg.norm(shapes[i] - V, axis=1)
    shown = show(axes, shapes[i], F, 100 * moved, look=(-60, 45), cmap="YlOrRd", limits=(0, 100 * DEPTHS[-1]))
    axes.set_title(f"pushed by {100 * DEPTHS[i]:.0f} cm: {energies[i]:.2f} J")
figure.colorbar(shown, ax=row, label="moved by [cm]", shrink=0.8)
plt.show()
