"""
Which load makes this vault?
============================

A net of springs is held at its four sides. Its shape is the minimum of an energy, which depends on the load of each
vertex. Given a shape, find the load: SciPy's L-BFGS minimises the squared distance of the net from it. The slopes go
through the minimum: `vjp` solves one system, with the factors of the last Hessian.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from shaded import show

import geoopt
from geoopt.meshes import cloth as square
from geoopt.operators import edges, spring_energy

VERTICES = int(os.environ.get("GALLERY_VERTICES", 2_500))
ITERATIONS = 40

V, F = square(VERTICES, 2.0, 1.0)
E = edges(F)
lengths = 0.8 * np.linalg.norm(V[E[:, 1]] - V[E[:, 0]], axis=1)  # the net is tight
x, y, _ = V.T
rim = np.flatnonzero((x == 0) | (x == 2.0) | (y == 0) | (y == 1.0))
wanted = 0.45 * np.sin(np.pi * y) * np.sin(np.pi * x / 2) * (1 - 0.6 * np.cos(2 * np.pi * x))  # heights [m]


def energy(p, load):
    """Of springs of 100 N/m, and of loads upward [N]."""
    return spring_energy(p, E, lengths, 100.0) - np.sum(load * p[:, 2])


settle = geoopt.Minimizer(energy, V, np.zeros(len(V)), fixed=rim, tolerance=1e-9)
minima = []


def loss(load):
    """The mean squared distance between the heights of the net and the wanted ones [cm²], and its slope by the load."""
    minima.append(settle(minima[-1].x if minima else V, load))
    slope = np.zeros_like(V)
    slope[:, 2] = 2e4 * (minima[-1].x[:, 2] - wanted) / len(V)
    return 1e4 * np.mean((minima[-1].x[:, 2] - wanted) ** 2), minima[-1].vjp(slope, wrt="load")


history = []
found = minimize(
    loss,
    np.zeros(len(V)),
    jac=True,
    method="L-BFGS-B",
    options={"maxiter": ITERATIONS},
    callback=lambda intermediate_result: history.append(intermediate_result.fun),
)
print(f"{len(history)} iterations, mean squared distance {history[0]:.1f} cm², then {history[-1]:.4f} cm²")

# %%
# The shape that is wanted, and the net under the load that was found.

figure, row = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
show(row[0], np.column_stack([x, y, wanted]), F, look=(-65, 30))
row[0].set_title("wanted")
shape, load = settle(minima[-1].x, found.x).x, found.x * len(V) / 2  # per area
limit = np.quantile(abs(load), 0.98)
shown = show(row[1], shape, F, load, look=(-65, 30), cmap="RdBu_r", limits=(-limit, limit))
row[1].set_title("found")
figure.colorbar(shown, ax=row, label="load, upward [N/m²]", shrink=0.8)
plt.show()
