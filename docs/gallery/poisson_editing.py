"""
Poisson editing
===============

In each triangle, the gradients of the three coordinates tell how it lies in space. Turn them, and look for positions
with the new gradients. Triangles that turn differently do not fit together; Poisson's equation finds the surface that
comes nearest. Here the turn grows with the height, and the surface bends with all its bumps.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation
from shaded import show

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import gradient, integrate_gradient

VERTICES = int(os.environ.get("GALLERY_VERTICES", 8_000))

V, F = bumpy(VERTICES)
V = V * [0.6, 0.6, 1] + np.tanh(2.5 * V[:, 2:]) * [0, 0, 1.2]  # a column
foot = np.flatnonzero(V[:, 2] < -1.7)
height = (V[F, 2].mean(axis=1) - V[:, 2].min()) / np.ptp(V[:, 2])  # of the triangles, from 0 to 1


def edited(V, turns):
    """Positions whose gradients are turned. turns : (m, 3, 3) rotations of the triangles"""
    G = gradient(V, F)
    fields = [(G @ V[:, i]).reshape(3, len(F)).T for i in range(3)]  # of x, y and z: a vector per triangle
    turned = [sum(turns[:, i, j, None] * fields[j] for j in range(3)) for i in range(3)]
    return np.stack([integrate_gradient(V, F, turned[i], foot, V[foot, i]) for i in range(3)], axis=1)


def turns(axis, degrees):
    """Of the triangles, about an axis, from nothing at the foot."""
    rise = np.clip((height - 0.15) / 0.7, 0, 1)
    return Rotation.from_rotvec(degrees * rise[:, None] * np.array(axis), degrees=True).as_matrix()


still = turns([0, 0, 0], 0)
edit = geoopt.compile(edited, V, still)
results = {
    "as it was": edit(V, still),
    "bent by 100°": edit(V, turns([0, 1, 0], 100)),
    "bent by 200°": edit(V, turns([0, 1, 0], 200)),
    "twisted by 180°": edit(V, turns([0, 0, 1], 180)),
}

figure, row = plt.subplots(1, len(results), figsize=(11, 4), sharex=True, sharey=True, layout="constrained")
for axes, (name, x) in zip(row, results.items(), strict=True):
    show(axes, x, F, look=(-75, 15))
    axes.set_title(name)
axes.set(xlim=(-1, 2.9), ylim=(-2.9, 2.3))
plt.show()
