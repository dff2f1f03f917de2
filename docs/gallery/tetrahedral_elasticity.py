"""
A ball of rubber, pressed and twisted
=====================================

Tetrahedra of a compressible neo-Hookean solid. The bottom of the ball is held, its top is pressed down and turned, and
Newton's method finds where all other vertices come to rest. It takes no step that turns a tetrahedron inside out, for
the energy is not a number there.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation
from shaded import show

import geoopt
from geoopt.meshes import tetrahedral_ball
from geoopt.operators import neo_hookean_energy

VERTICES = int(os.environ.get("GALLERY_VERTICES", 3_000))
YOUNG, POISSON = 100.0, 0.4  # kPa, and so energies in kJ
MU, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
TURN, PRESS, STEPS = 120, 0.4, 6  # degrees, m

X, T = tetrahedral_ball(VERTICES)
top, bottom = (np.flatnonzero(side * X[:, 2] > 0.75) for side in (1, -1))
settle = geoopt.Minimizer(
    lambda x: neo_hookean_energy(x, X, T, MU, LAMBDA), X, fixed=np.concatenate([top, bottom]), tolerance=1e-8
)
share = np.clip((X[:, 2] + 0.75) / 1.5, 0, 1)[:, None]  # of the motion of the top, to start from
x, minima = X, []
for _ in range(STEPS):
    start = Rotation.from_rotvec(share * [0, 0, TURN / STEPS], degrees=True).apply(x) - share * [0, 0, PRESS / STEPS]
    minima.append(settle(start))
    x = minima[-1].x
    print(f"{minima[-1].iterations} iterations, {minima[-1].energies[-1]:.3f} kJ")

# %%
# Triangles of one tetrahedron alone are the surface. The colour is the largest stretch, which is the largest singular
# value of the deformation gradient, as the mean of the tetrahedra at each vertex.

sides = T[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
_, first, count = np.unique(np.sort(sides, axis=1), axis=0, return_index=True, return_counts=True)
F = sides[first[count == 1]]


def largest_stretch(x):
    """At the vertices (n,)."""
    G = np.linalg.inv(X[T[:, 1:]] - X[T[:, :1]]) @ (x[T[:, 1:]] - x[T[:, :1]])
    stretch = np.linalg.svd(G, compute_uv=False)[:, 0]
    return np.bincount(T.ravel(), np.repeat(stretch, 4)) / np.bincount(T.ravel())


shapes = {"rest": X, "halfway": minima[STEPS // 2 - 1].x, f"turned by {TURN}°": x}
figure, row = plt.subplots(1, 3, figsize=(11, 3.5), sharex=True, sharey=True, layout="constrained")
for axes, (name, x) in zip(row, shapes.items(), strict=True):
    shown = show(axes, x, F, largest_stretch(x), look=(-60, 15), limits=(1, 2), cmap="plasma")
    axes.set_title(name)
axes.set(xlim=(-1.4, 1.4), ylim=(-1.2, 1.1))
figure.colorbar(shown, ax=row, label="largest stretch", shrink=0.8)
plt.show()
