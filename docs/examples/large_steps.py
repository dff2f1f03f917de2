"""A sphere becomes another surface: its vertices are optimised in torch, through a Laplacian preconditioner.

    python docs/examples/large_steps.py --target spot.obj --picture large_steps.png

Known are points of a surface. What is wanted is a mesh near them: the chamfer distance between its vertices and the
points is minimised. Steps on the positions x themselves tangle the triangles. Nicolet, Jacobson and Jakob, "Large Steps
in Inverse Rendering of Geometry", 2021, take steps on u = (I + λ L) x instead, where L is the Laplacian of the graph:
what pulls one vertex moves its neighbours, too. x is the solution of a linear system, whose matrix is the same in all
steps: it is factored once. torch goes back through the solution, which takes another solve with the same factor.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.spatial import cKDTree

import geoopt
import geoopt.torch
from geoopt.apps.picture import shoot, start
from geoopt.meshes import bumpy, icosphere, load
from geoopt.operators import dihedral_angles, edges

POINTS = 20_000  # of the target
FOLD = np.pi / 2  # between the normals of neighbours
TURN = np.array([[-0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, -0.6]])  # of what is drawn, about the upward axis
GAP = 1.42  # between the middles of what is drawn


def samples(V: np.ndarray, F: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Random points of a surface, (count, 3), equally dense everywhere."""
    random = np.random.default_rng(seed)
    area = np.linalg.norm(np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]), axis=1)
    face = random.choice(len(F), count, p=area / area.sum())
    return np.einsum("pc,pcd->pd", random.dirichlet(np.ones(3), count), V[F[face]])


def target(file: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """A surface of the size of the unit sphere."""
    V, F = load(file) if file else bumpy(20_000)
    V = V - (V.max(axis=0) + V.min(axis=0)) / 2
    return V / np.linalg.norm(V, axis=1).max(), F


class Chamfer:
    """Mean squared distance of vertices from the nearest points, and of these from the nearest vertices."""

    def __init__(self, points: np.ndarray):
        self.points, self.tree = torch.tensor(points), cKDTree(points)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        vertices = x.detach().numpy()
        there, back = self.tree.query(vertices)[1], cKDTree(vertices).query(self.points.numpy())[1]
        apart = x - self.points[there], self.points - x[back]
        return sum((a**2).sum(dim=1).mean() for a in apart)


class UniformAdam(torch.optim.Optimizer):
    """Adam as in the paper: one number scales the steps of all vertices, so none is turned away from its slope."""

    def __init__(self, parameters: Any, lr: float, betas: tuple[float, float] = (0.9, 0.999)):
        super().__init__(parameters, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                count = state["count"] = state.get("count", 0) + 1
                state["mean"] = first * state.get("mean", 0) + (1 - first) * p.grad
                state["square"] = second * state.get("square", 0) + (1 - second) * p.grad**2
                longest = (state["square"].max() / (1 - second**count)).sqrt()
                p -= group["lr"] / (1 - first**count) * state["mean"] / (longest + 1e-12)


def preconditioner(F: np.ndarray, n: int, stiffness: float) -> sp.csr_array:
    """I + λ L, with the Laplacian of the graph: the number of a vertex's neighbours on the diagonal, -1 beside it."""
    i, j = edges(F).T
    W = sp.csr_array((np.ones(2 * len(i)), (np.concatenate([i, j]), np.concatenate([j, i]))), (n, n))
    return sp.csr_array(sp.eye_array(n) + stiffness * (sp.diags_array(W.sum(axis=1)) - W))


def fitted(chamfer: Chamfer, u: torch.Tensor, positions: Any, optimizer: Any, steps: int) -> np.ndarray:
    """The vertices after steps on u, of which positions makes them."""
    begin = time.perf_counter()
    for step in range(steps + 1):
        loss = chamfer(positions(u))
        if step % max(steps // 5, 1) == 0:
            print(f"  step {step:4}  loss {loss.item():.3e}")
        if step < steps:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"  {1e3 * (time.perf_counter() - begin) / (steps + 1):.0f} ms a step")
    return positions(u).detach().numpy()


def told(name: str, V: np.ndarray, F: np.ndarray, T: np.ndarray, G: np.ndarray) -> None:
    """How good a mesh is: where it is folded, and the chamfer distance of new points of it from new ones of the target,
    which is not zero for the target itself, for the points are random."""
    folds = np.mean(np.abs(dihedral_angles(V, F)) > FOLD)
    apart = Chamfer(samples(T, G, POINTS, 1))(torch.tensor(samples(V, F, POINTS, 2)))
    print(f"{name}: folded at {folds:.2%} of its edges, points of both surfaces {apart.item():.2e} apart")


def draw(surfaces: list[tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    """Surfaces side by side, with their edges."""
    ps = start((1800, 680))
    colours = (0.55, 0.6, 0.68), (0.95, 0.72, 0.35), (0.9, 0.5, 0.45)
    for i, ((V, F), colour) in enumerate(zip(surfaces, colours, strict=True)):
        how = {"color": colour, "edge_color": [0.5 * c for c in colour], "edge_width": 0.5}
        ps.register_surface_mesh(str(i), V @ TURN + [GAP * i, 0, 0], F, back_face_policy="identical", **how)
    ps.set_vertical_fov_degrees(12)
    ps.look_at((GAP + 0.05, 1.5, 8.6), (GAP + 0.05, 0, 0))
    shoot(ps, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--stiffness", type=float, default=19.0, help="λ")
    parser.add_argument("--target", type=Path, help="a triangle mesh of sphere topology; a generated one without it")
    parser.add_argument("--picture", type=Path, help="a PNG file to write: the target, and both results")
    given = parser.parse_args()
    (V, F), (T, G) = icosphere(given.vertices), target(given.target)
    chamfer = Chamfer(samples(T, G, POINTS, 0))

    print(f"{len(V)} vertices, steps on (I + {given.stiffness:g} L) x")
    A = preconditioner(F, len(V), given.stiffness)
    positions = geoopt.torch.function(lambda u: geoopt.solve(A, u), V)
    u = torch.tensor(A @ V, requires_grad=True)
    smooth = fitted(chamfer, u, positions, UniformAdam([u], lr=0.1), given.steps)

    print("steps on x")
    x = torch.tensor(V, requires_grad=True)
    plain = fitted(chamfer, x, lambda x: x, torch.optim.Adam([x], lr=0.01), given.steps)
    told("target", T, G, T, G)
    told("steps on (I + λ L) x", smooth, F, T, G)
    told("steps on x", plain, F, T, G)
    if given.picture:
        draw([(T, G), (smooth, F), (plain, F)], given.picture)


if __name__ == "__main__":
    main()
