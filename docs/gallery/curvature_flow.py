"""
Mean-curvature flow
===================

Each step moves the surface along its mean-curvature normals: small features go first, then large ones, and what is left
is nearly a sphere. One program does a whole step: it assembles the matrix at the new positions, factors it and solves.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from shaded import show

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian, mean_curvature_flow, surface_area

VERTICES = int(os.environ.get("GALLERY_VERTICES", 10_000))
TIME = 2e-3  # of a step [m²]
SHOWN = 0, 2, 8, 32  # steps

V, F = bumpy(VERTICES)
step = geoopt.compile(mean_curvature_flow, V, F, TIME)
laplacian = geoopt.compile(cotan_laplacian, V, F)

shapes = [V]
for _ in range(max(SHOWN)):
    shapes.append(step(shapes[-1], TIME))
areas = [surface_area(x, F) for x in shapes]


def curvature(x):
    """|H| at the vertices: half the length of M⁻¹ L x."""
    L, M = laplacian(x)
    return 0.5 * np.linalg.norm(L @ x, axis=1) / M.diagonal()


figure, row = plt.subplots(1, len(SHOWN), figsize=(11, 3.2), sharex=True, sharey=True, layout="constrained")
for axes, count in zip(row, SHOWN, strict=True):
    shown = show(axes, shapes[count], F, curvature(shapes[count]), limits=(0, 4))
    axes.set_title(f"{count} steps, {areas[count]:.1f} m²")
axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))  # of all
figure.colorbar(shown, ax=row, label="|H| [1/m]", shrink=0.8)
plt.show()
