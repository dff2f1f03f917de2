"""
A cloth on a ball
=================

Implicit steps of Baraff and Witkin. Vertices inside of the ball are pulled back to its surface by stiff, damped
springs, which become part of the linear system. One program does a whole step: forces, their derivatives, contacts and
the solution.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from shaded import PLAIN, show

import geoopt
from geoopt.meshes import cloth as square
from geoopt.meshes import icosphere
from geoopt.operators import cloth, cloth_system, face_areas
from geoopt.sparse import from_diagonal

VERTICES = int(os.environ.get("GALLERY_VERTICES", 4_000))
STEP = 1 / 60  # s
STEPS = 60
RADIUS = 0.35  # m
HOLD, RUB = 200.0, 2.0  # springs [N/m] and dampers [N s/m] of one vertex

V, F = square(VERTICES, 1.2, 1.2)
V += np.array([-0.6, -0.6, RADIUS + 0.02])  # above a ball around the origin
per_area = 1 / face_areas(V, F).mean()  # so that the cloth is as stiff, whatever its resolution
rest = cloth(
    V,
    F,
    total_mass=0.6,
    stretch=400 * per_area,
    stretch_damping=4 * per_area,
    shear=60 * per_area,
    shear_damping=0.6 * per_area,
    bending=1e-4,
    bend_damping=1e-6,
)


def advance(x, v):
    """Positions and velocities after a step."""
    A, b = cloth_system(x, v, STEP, rest, definite=True)
    distance = np.linalg.norm(x, axis=1)[:, None]
    is_inside = np.where(distance < RADIUS, 1.0, 0.0)
    pull = is_inside * HOLD * (RADIUS / distance - 1) * x
    A = A + from_diagonal(np.repeat(STEP * (STEP * HOLD + RUB) * is_inside, 3, axis=1).reshape(3 * len(V)))
    v = geoopt.solve(A, b + STEP * pull.reshape(3 * len(V))).reshape(len(V), 3)
    return x + STEP * v, v


step = geoopt.compile(advance, V, np.zeros_like(V))
x, v = V, np.zeros_like(V)
states = [x]
for _ in range(STEPS):
    x, v = step(x, v)
    states.append(x)

# %%
# The cloth does not collide with itself. The ball is drawn a little smaller, so that the cloth hides it.

S, T = icosphere(VERTICES)
G = np.concatenate([F, T + len(V)])
colours = np.repeat([[0.8, 0.3, 0.26], PLAIN], [len(V), len(S)], axis=0)
figure, row = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for axes, count in zip(row, (STEPS // 3, STEPS), strict=True):
    show(axes, np.concatenate([states[count], 0.985 * RADIUS * S]), G, colours, look=(-65, 15))
    axes.set_title(f"{count * STEP:.2f} s")
axes.set(xlim=(-0.75, 0.75), ylim=(-0.6, 0.45))
plt.show()
