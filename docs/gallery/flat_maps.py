"""
Flat maps: LSCM and symmetric Dirichlet
=======================================

Two maps of a disk to the plane, with a checkerboard. Least-squares conformal maps keep angles and let areas grow or
shrink; one linear system gives them. The symmetric Dirichlet energy keeps both, as far as it can; Newton's method
minimises it from Tutte's embedding, and no triangle flips on the way.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from shaded import show

import geoopt
from geoopt.apps.parametrize import double_areas, first_flip, open_surface, tutte
from geoopt.operators import lscm, symmetric_dirichlet_energy

VERTICES = int(os.environ.get("GALLERY_VERTICES", 5_000))

V, F = open_surface(VERTICES)  # a bumpy surface without its underside
start = tutte(V, F)
first = np.argmax(start[:, 0])
pins = [first, np.argmin(start @ start[first])]  # far from each other on the boundary
conformal = geoopt.compile(lscm, V, F, pins, start[pins])(V, start[pins])
conformal *= np.sqrt(double_areas(V, F).sum() / double_areas(conformal, F).sum())  # as large as the surface

# %%
# The step of Newton's method ends before a triangle loses its area.

found = geoopt.newton(
    lambda x: symmetric_dirichlet_energy(x, V, F), start, max_step=lambda x, d: 0.9 * first_flip(x, d, F)
)
print(f"{found.iterations} iterations, energy {found.energies[0]:.1f} m², then {found.energies[-1]:.2f} m²")

# %%
# Above, the surface with the squares of each map; below, how areas have changed in the plane.

maps = {"LSCM": conformal, "symmetric Dirichlet": found.x}
growth = {name: np.log2(double_areas(x, F) / double_areas(V, F)) for name, x in maps.items()}
figure, rows = plt.subplots(2, 2, figsize=(8, 7.5), sharex="row", sharey="row", layout="constrained")
for (above, below), (name, x) in zip(rows.T, maps.items(), strict=True):
    show(above, V, F, 6 * x, look=(-60, 40))
    above.set_title(name)
    shown = below.tripcolor(*x.T, F, growth[name], cmap="coolwarm", vmin=-2, vmax=2)
    below.set(aspect="equal")
    below.set_axis_off()
figure.colorbar(shown, ax=rows[1], label="log₂ of area in the plane / on the surface", shrink=0.8)
plt.show()
