"""What made a cloth move so: its stiffness and the wind, recovered from its motion.

    python docs/examples/inverse_cloth.py --vertices 2000 --steps 30

A cloth that hangs at two corners is blown about. All that is known are the positions of its vertices at each step; what
is wanted is how stiff it is, against stretch, shear and bending, and the wind. The sum of the squared distances from
the known positions is minimised by SciPy's L-BFGS; its slopes come from `geoopt.Chain`, which goes back through all
implicit steps, each with a linear system.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import geoopt
from geoopt.apps.cloth import system
from geoopt.apps.picture import render
from geoopt.meshes import cloth as square
from geoopt.operators import cloth

TIME_STEP = 1 / 60  # s
AIR = 0.2
GRAVITY = np.array([0.0, 0.0, -9.81])
NAMES = "stretch", "shear", "bending", "wind x", "wind y", "wind z"
TRUE = np.array([800.0, 150.0, 2e-3, 1.5, 6.0, -1.0])
START = np.array([300.0, 400.0, 5e-4, 0.0, 3.0, 0.0])


def step(x: Any, v: Any, stretch: Any, shear: Any, bending: Any, wind: Any, rest: Any, held: np.ndarray) -> Any:
    """An implicit step of Baraff and Witkin, 1998. held : degrees of freedom that do not move"""
    A, b = system(x, v, TIME_STEP, stretch, shear, bending, 0.05, GRAVITY, wind, AIR, rest)
    v = geoopt.solve(A, b, fixed=held).reshape(x.shape)
    return x + TIME_STEP * v, v


class Inverse:
    """The loss of guesses, as numbers of about 1: logarithms of stiffnesses, and the wind in m/s."""

    def __init__(self, vertices: int, steps: int):
        self.V, self.F = square(vertices)
        rest = cloth(self.V, self.F)
        x, y, _ = self.V.T
        corners = np.array([np.argmin(x + y), np.argmax(x - y)])
        held = (3 * corners[:, None] + np.arange(3)).ravel()
        self.state = self.V, np.zeros(self.V.shape)
        self.motion = geoopt.Chain(step, self.state, *self.parameters(self.guess(TRUE)), rest, held, steps=steps)
        self.known = self.positions(self.guess(TRUE))

    @staticmethod
    def guess(values: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(values[:3]), values[3:]])

    @staticmethod
    def parameters(guess: np.ndarray) -> tuple:
        """What a step takes."""
        return *map(float, np.exp(guess[:3])), guess[3:]

    def positions(self, guess: np.ndarray) -> np.ndarray:
        """After each step, (steps + 1, n, 3)."""
        return self.motion(self.state, *self.parameters(guess)).states[0]

    def __call__(self, guess: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean squared distance [cm²] of the vertices from where they were, and its slope."""
        run = self.motion(self.state, *self.parameters(guess))
        apart = 100 * (run.states[0] - self.known)
        _, *stiffness, wind = run.vjp((200 * apart / (apart.size / 3), None))
        return float(np.sum(apart**2)) / (apart.size / 3), np.concatenate([stiffness * np.exp(guess[:3]), wind])


def recovered(inverse: Inverse) -> np.ndarray:
    """What the motion was made by, as `TRUE` is."""
    start = inverse.guess(START)
    options = {"ftol": 1e-14, "gtol": 1e-9}
    found = minimize(inverse, start, jac=True, method="L-BFGS-B", callback=_told, options=options)
    return _values(found.x)


def _values(guess: np.ndarray) -> np.ndarray:
    return np.concatenate([np.exp(guess[:3]), guess[3:]])


def _told(intermediate_result: Any) -> None:  # SciPy looks for this name
    values = zip(NAMES, _values(intermediate_result.x), strict=True)
    print(f"loss {intermediate_result.fun:.3e} cm²", *(f"{name} {value:.4g}" for name, value in values), sep="  ")


def draw(inverse: Inverse, found: np.ndarray, path: Path) -> None:
    """Three cloths after the last step: as first guessed, as known, as recovered, with distances from the second."""
    ends = [inverse.positions(inverse.guess(START))[-1], inverse.known[-1], inverse.positions(inverse.guess(found))[-1]]
    apart = [np.linalg.norm(x - inverse.known[-1], axis=1) for x in ends]
    width = 1.2 * np.ptp(inverse.V[:, 0])
    V = np.concatenate([x + np.array([width * i, 0, 0]) for i, x in enumerate(ends)])
    V = V[:, [0, 2, 1]] * [1, 1, -1]  # upward is the second axis of the picture
    F = np.concatenate([inverse.F + i * len(inverse.V) for i in range(3)])
    render(V, F, np.concatenate(apart), "distance [m]", path, both_sides=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument(
        "--picture", type=Path, help="a PNG file to write: the cloth as guessed, as known, as recovered"
    )
    given = parser.parse_args()
    start = time.perf_counter()
    inverse = Inverse(given.vertices, given.steps)
    found = recovered(inverse)
    print(f"{time.perf_counter() - start:.1f} s")
    print(f"{'':12} {'made by':>10} {'start':>10} {'recovered':>10}")
    for row in zip(NAMES, TRUE, START, found, strict=True):
        print("{:>12} {:10.4g} {:10.4g} {:10.4g}".format(*row))
    if given.picture:
        draw(inverse, found, given.picture)


if __name__ == "__main__":
    main()
