"""
Bi-harmonic weights
===================

Each handle has a weight on the surface: 1 at the handle, 0 at the others, and as smooth as possible between. The
weights are bi-harmonic functions; `harmonic` with ``power=2`` solves one system for all of them. Where handles move,
each vertex moves by the sum of their moves, times its weights.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from shaded import show

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import harmonic

VERTICES = int(os.environ.get("GALLERY_VERTICES", 8_000))

V, F = bumpy(VERTICES)
directions = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
handles = np.argmax(V @ directions.T, axis=0)  # six vertices, far out
identity = np.eye(len(handles))
weights = geoopt.compile(harmonic, V, F, handles, identity, power=2)(V, identity)
print(f"the sum of the weights differs from 1 by {abs(weights.sum(axis=1) - 1).max():.0e}")

# %%
# The weights of three handles, in bands of 0.1.

figure, row = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
for axes, i in zip(row, (0, 3, 4), strict=True):
    shown = show(axes, V, F, weights[:, i], look=(-50, 25), limits=(-0.2, 1), bands=0.1)
    axes.set_title(f"handle {i}")
figure.colorbar(shown, ax=row, label="weight", shrink=0.8)

# %%
# Three of the handles are pulled outward by 0.8 m.

moved = V + weights[:, [0, 3, 4]] @ (0.8 * directions[[0, 3, 4]])
figure, row = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for axes, x, name in zip(row, (V, moved), ("rest", "moved"), strict=True):
    show(axes, x, F, look=(-50, 25))
    axes.set_title(name)
axes.set(xlim=(-1.6, 2), ylim=(-1.5, 2))
plt.show()
