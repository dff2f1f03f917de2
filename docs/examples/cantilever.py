"""The stiffest shape of a beam of given weight: its compliance, minimised by where its boundary is.

    python docs/examples/cantilever.py --length 120 --picture beam.png

A beam is held at its left end and loaded at the middle of the right one. Its upper and its lower edge are splines whose
controls may move up and down; its area stays. The inner vertices follow by a Laplacian system that is solved in each
call, as is the elastic one; the slope goes through both. SciPy's SLSQP minimises.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from scipy.optimize import minimize

import geoopt
from geoopt.operators import cotan_laplacian
from geoopt.sparse import from_triplets

HEIGHT, ASPECT = 1.0, 4.0  # m
YOUNG, POISSON = 100.0, 0.3  # N/m, for a sheet
ELASTICITY = YOUNG / (1 - POISSON**2) * np.array([[1, POISSON, 0], [POISSON, 1, 0], [0, 0, (1 - POISSON) / 2]])
LOAD = 1.0  # N, downward
LEAST, MOST = 0.25, 2.0  # times the height that it has in the beginning
CONTROLS = 10  # of each edge


def grid(length: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A rectangle of squares cut in two: vertices (n, 2), triangles (m, 3), and how many vertices a column has."""
    columns, rows = length + 1, max(int(length / ASPECT), 2) // 2 * 2 + 1
    x, y = np.meshgrid(np.linspace(0, ASPECT * HEIGHT, columns), np.linspace(0, HEIGHT, rows), indexing="ij")
    number = np.arange(columns * rows).reshape(columns, rows)
    a, b, c, d = (number[i : i + columns - 1, j : j + rows - 1].ravel() for i in (0, 1) for j in (0, 1))
    is_even = ((a // rows + a % rows) % 2 == 0)[:, None]
    one = np.where(is_even, np.stack([a, c, d], axis=1), np.stack([a, c, b], axis=1))
    other = np.where(is_even, np.stack([a, d, b], axis=1), np.stack([b, c, d], axis=1))
    return np.stack([x.ravel(), y.ravel()], axis=1), np.concatenate([one, other]), rows


def strains(V: Any, F: np.ndarray) -> tuple[Any, Any]:
    """Of linear triangles: the strain (xx, yy, 2 xy) by the displacements of the corners, (m, 3, 6), and areas (m,)."""
    edges = np.stack([V[F[:, 2]] - V[F[:, 1]], V[F[:, 0]] - V[F[:, 2]], V[F[:, 1]] - V[F[:, 0]]], axis=1)
    double_area = edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]
    along, across = -edges[:, :, 1] / double_area[:, None], edges[:, :, 0] / double_area[:, None]  # of hat functions
    zero = np.zeros((len(F), 3))
    rows = [np.stack(pair, axis=2).reshape(len(F), 6) for pair in ((along, zero), (zero, across), (across, along))]
    return np.stack(rows, axis=1), double_area / 2


def stiffness(V: Any, F: np.ndarray) -> Any:
    """Of linear triangles in plane stress, (2n, 2n); degrees of freedom in the order of V.ravel()."""
    B, area = strains(V, F)
    K = area[:, None, None] * np.einsum("mia,ij,mjb->mab", B, ELASTICITY, B)
    places = places_of(F)
    rows, columns = np.broadcast_arrays(places[:, :, None], places[:, None])
    return from_triplets(rows, columns, K, (2 * len(V), 2 * len(V)))


def places_of(F: np.ndarray) -> np.ndarray:
    """The degrees of freedom of each triangle, (m, 6)."""
    return (2 * F[:, :, None] + np.arange(2)).reshape(len(F), 6)


class Beam:
    """controls : heights of the splines, those of the lower edge before those of the upper one"""

    def __init__(self, length: int):
        self.V, self.F, rows = grid(length)
        n = len(self.V)
        self.edges = np.concatenate([np.arange(0, n, rows), np.arange(rows - 1, n, rows)])
        self.held = np.arange(rows)  # the left end, where nothing moves
        self.load = np.zeros(2 * n)
        self.load[2 * (n - 1 - rows // 2) + 1] = -LOAD
        flat = np.column_stack([self.V, np.zeros(n)])
        self.L = sp.csr_array(cotan_laplacian(flat, self.F)[0])
        knots = np.concatenate([[0.0] * 3, np.linspace(0, 1, CONTROLS - 2), [1.0] * 3])
        spline = BSpline.design_matrix(np.linspace(0, 1, length + 1), knots, 3)
        self.splines = sp.csr_array(sp.block_diag([spline, spline]))  # heights of the edges by controls
        self.start = np.repeat([0.0, HEIGHT], CONTROLS)
        self.compliance = geoopt.compile(geoopt.value_and_gradient(self._compliance), self.start)
        self.area = geoopt.compile(geoopt.value_and_gradient(self._area), self.start)

    def shape(self, controls: Any) -> Any:
        """The vertices (n, 2); the inner ones follow the edges."""
        y = geoopt.solve(self.L, np.zeros(len(self.V)), fixed=self.edges, values=self.splines @ controls)
        return np.stack([self.V[:, 0], y], axis=1)

    def displacement(self, V: Any) -> Any:
        fixed = (2 * self.held[:, None] + np.arange(2)).ravel()
        return geoopt.solve(stiffness(V, self.F), self.load, fixed=fixed)

    def _compliance(self, controls: Any) -> Any:
        return np.sum(self.load * self.displacement(self.shape(controls)))

    def _area(self, controls: Any) -> Any:
        return np.sum(strains(self.shape(controls), self.F)[1])


def stiffest(beam: Beam, iterations: int) -> np.ndarray:
    """The controls of the best shape found."""
    area = beam.area(beam.start)[0]
    same_area = {"type": "eq", "fun": lambda h: beam.area(h)[0] - area, "jac": lambda h: beam.area(h)[1]}
    least, most = HEIGHT / 2 * LEAST, HEIGHT / 2 * MOST  # from the middle
    lower, upper = (HEIGHT / 2 - most, HEIGHT / 2 - least), (HEIGHT / 2 + least, HEIGHT / 2 + most)
    how: dict[str, Any] = {
        "bounds": [lower] * CONTROLS + [upper] * CONTROLS,
        "constraints": [same_area],
        "method": "SLSQP",
    }
    options = {"maxiter": iterations, "ftol": 1e-6}
    found = minimize(beam.compliance, beam.start, jac=True, options=options, **how)
    print(f"{found.nit} iterations, {found.nfev} shapes: {found.message}")
    return found.x


def draw(beam: Beam, shapes: dict[str, np.ndarray], path: Path) -> None:
    """Shapes, coloured by the elastic energy in their triangles."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(shapes), figsize=(6.5, 2.4 * len(shapes)), layout="constrained", sharex=True)
    for axis, (name, controls) in zip(axes, shapes.items(), strict=True):
        V = beam.shape(controls)
        u = beam.displacement(V)
        strain = np.einsum("mia,ma->mi", strains(V, beam.F)[0], u[places_of(beam.F)])
        energy = 0.5 * np.einsum("mi,ij,mj->m", strain, ELASTICITY, strain)
        drawn = axis.tripcolor(*V.T, beam.F, energy, cmap="magma", vmin=0, vmax=1.0)
        axis.set(
            title=f"{name}: compliance {beam.compliance(controls)[0]:.3f} J",
            aspect="equal",
            ylim=(-0.6 * HEIGHT, 1.6 * HEIGHT),
        )
    figure.colorbar(drawn, ax=axes, label="elastic energy per area [J/m²]")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=120, help="squares along the beam")
    parser.add_argument("--iterations", type=int, default=100, help="at most")
    parser.add_argument("--picture", type=Path, help="a file to draw the two shapes into; needs matplotlib")
    given = parser.parse_args()
    start = time.perf_counter()
    beam = Beam(given.length)
    print(f"prepared in {time.perf_counter() - start:.1f} s: {len(beam.V)} vertices")
    start = time.perf_counter()
    best = stiffest(beam, given.iterations)
    before, after = beam.compliance(beam.start)[0], beam.compliance(best)[0]
    print(f"{time.perf_counter() - start:.1f} s; compliance {before:.3f} J, then {after:.3f} J")
    if given.picture:
        draw(beam, {"rectangle": beam.start, "stiffest": best}, given.picture)


if __name__ == "__main__":
    main()
