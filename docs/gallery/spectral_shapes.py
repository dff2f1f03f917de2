"""
Shapes in the spectrum
======================

The eigenfunctions of the Laplacian, −L u = λ M u, are the vibrations of the surface, from slow to fast. SciPy's Lanczos
method needs many solutions with one matrix. `geoopt.solve` factors it once, and remembers the factors.
"""

import os
import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from shaded import show

import geoopt
from geoopt.meshes import bumpy, load
from geoopt.operators import cotan_laplacian

VERTICES = int(os.environ.get("GALLERY_VERTICES", 8_000))
SHIFT = -0.1  # [1/m²], below all eigenvalues, so that the matrix is positive definite

V, F = load(sys.argv[1]) if sys.argv[1:] else bumpy(VERTICES)
L, M = geoopt.compile(cotan_laplacian, V, F)(V)
A = -L - SHIFT * M
inverse = LinearOperator(A.shape, matvec=lambda b: geoopt.solve(A, b), dtype=float)
values, functions = eigsh(-L, 40, M, sigma=SHIFT, OPinv=inverse, v0=np.ones(len(V)))

figure, rows = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained")
for axes, i in zip(rows.flat, (1, 2, 4, 8, 16, 32), strict=True):
    u = functions[:, i] / abs(functions[:, i]).max()
    shown = show(axes, V, F, u, cmap="RdBu_r", limits=(-1, 1), bands=0.2)
    axes.set_title(f"number {i}: λ = {values[i]:.2f} / m²")
figure.colorbar(shown, ax=rows, label="u / max |u|", shrink=0.6)
plt.show()
