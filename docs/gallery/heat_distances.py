"""
Distances along a surface
=========================

The heat method of Crane, Weischedel and Wardetzky: let heat diffuse for a moment, take the direction in which it falls,
and find the function with this gradient. `heat_distances` does it with two linear systems, which belong to the program.
"""

import os
import sys

import matplotlib.pyplot as plt
import numpy as np
from shaded import show

import geoopt
from geoopt.meshes import bumpy, icosphere, load
from geoopt.operators import heat_distances

VERTICES = int(os.environ.get("GALLERY_VERTICES", 10_000))

# %%
# Around one vertex
# -----------------
#
# Thirty bands of equal width; where they are narrow the surface is steep, as seen from here.

V, F = load(sys.argv[1]) if sys.argv[1:] else bumpy(VERTICES)
source = np.argmax(V @ [0.6, -1, 0.3])  # in front
distances = geoopt.compile(heat_distances, V, F, source)
found = distances(V)

figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
shown = show(axes, V, F, found, bands=found.max() / 30, cmap="magma_r", limits=(0, found.max()))
figure.colorbar(shown, ax=axes, label="distance [m]", shrink=0.7)

# %%
# How exact it is
# ---------------
#
# On the unit sphere the distance is the angle between two directions.

S, T = icosphere(VERTICES)
start = np.argmax(S @ [0.6, -1, 0.3])
exact = np.arccos(np.clip(S @ S[start], -1, 1))
error = 100 * abs(geoopt.compile(heat_distances, S, T, start)(S) - exact)

figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
shown = show(axes, S, T, error, cmap="magma_r", limits=(0, error.max()))
figure.colorbar(shown, ax=axes, label="error [cm]", shrink=0.7)
print(f"{len(S)} vertices, mean error {error.mean():.2f} cm, largest {error.max():.2f} cm")
plt.show()
