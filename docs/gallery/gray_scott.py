"""
Gray-Scott patterns on a sphere
===============================

Two substances diffuse on the surface and react: v multiplies where there is u, and decays; u is fed. Diffusion is
implicit, so each step solves with two matrices. They do not vary, so both are factored while the program is prepared.
A step solves with their factors.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from shaded import show

import geoopt
from geoopt.meshes import icosphere
from geoopt.operators import cotan_laplacian

VERTICES = int(os.environ.get("GALLERY_VERTICES", 10_000))
STEPS = int(os.environ.get("GALLERY_STEPS", 3_000))
FEED, DECAY = 0.037, 0.06
SPREAD_U, SPREAD_V = 2e-4, 1e-4  # m² per unit of time

V, F = icosphere(VERTICES)
L, M = cotan_laplacian(V, F)
mass = M.diagonal()


def react(u, v):
    """The substances after a unit of time."""
    eaten = u * v * v
    u = geoopt.solve(M - SPREAD_U * L, mass * (u - eaten + FEED * (1 - u)))
    v = geoopt.solve(M - SPREAD_V * L, mass * (v + eaten - (FEED + DECAY) * v))
    return u, v


seeds = np.random.default_rng(0).choice(len(V), 30, replace=False)
near = (V @ V[seeds].T).max(axis=1) > 0.995  # 30 spots with some v
u, v = np.where(near, 0.5, 1.0), np.where(near, 0.25, 0.0)
step = geoopt.compile(react, u, v)
history = {}
for count in range(1, STEPS + 1):
    u, v = step(u, v)
    if count in (STEPS // 10, STEPS // 3, STEPS):
        history[count] = v

figure, row = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
for axes, (count, v) in zip(row, history.items(), strict=True):
    shown = show(axes, V, F, v, limits=(0, 0.35), cmap="YlGnBu")
    axes.set_title(f"after {count} steps")
figure.colorbar(shown, ax=row, label="concentration of v", shrink=0.8)
plt.show()
