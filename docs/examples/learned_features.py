"""A network learns which bump a vertex is on, by curvatures that were diffused for times which it learns, too.

    python docs/examples/learned_features.py --picture learned_features.png

Spheres have wide bumps and narrow ones, equally curved at their tops, and noise: the curvature at a vertex does not
tell which is which, that around it does. A compiled program computes the mean curvature of a shape by the cotangent
Laplacian, and diffuses it for some times by linear systems, in each step of the training. A network of three layers
sees these numbers, of one vertex at a time. The times are variables of the program: torch goes back through its
solves, and Adam changes them with the weights, as in Sharp, Attaiki, Crane and Ovsjanikov, "DiffusionNet", 2022.

Two others are trained beside it: one whose times stay as they are at the start, one that sees the curvature alone. All
are asked about a shape that they have not seen, on another mesh.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import geoopt
import geoopt.torch
from geoopt.apps.picture import shoot, start
from geoopt.meshes import bumpy, icosphere
from geoopt.operators import cotan_laplacian, vertex_normals

WIDTHS, COUNTS = np.array([0.15, 0.4]), (14, 5)  # of narrow bumps and of wide ones, in radians; at most
SHARPNESS = 1.2  # a bump's height by its width, squared
NOISE = 1e-3  # of a radius of 1
START = np.geomspace(1e-4, 1e-3, 4)  # times, m²
NEVER = np.full(4, 1e-6)  # so short, beside the squares of edges, that almost nothing diffuses
KINDS = 3
COLOURS = np.array([[0.86, 0.87, 0.9], [0.93, 0.5, 0.22], [0.25, 0.5, 0.8]])  # of these
GAP = 2.8  # between the middles of what is drawn


def shape(sphere: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices of a sphere with bumps and noise, and what each is on: 0 no bump, 1 a narrow one, 2 a wide one."""
    random = np.random.default_rng(seed)
    centres, kinds = placed(random)
    angle = np.arccos(np.clip(sphere @ centres.T, -1, 1))
    width = WIDTHS[kinds]
    height = (SHARPNESS * width**2 * np.exp(-0.5 * (angle / width) ** 2)).sum(axis=1)
    is_on = angle < width
    label = np.where(is_on.any(axis=1), 1 + kinds[is_on.argmax(axis=1)], 0)
    V = sphere * (1 + height + NOISE * random.standard_normal(len(sphere)))[:, None]
    return V * random.uniform(0.85, 1.15, 3), label


def placed(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Centres of bumps that do not meet, and their kinds."""
    centres, kinds = np.zeros((0, 3)), np.zeros(0, int)
    for kind in [1] * COUNTS[1] + [0] * COUNTS[0]:
        for _ in range(1000):
            p = random.standard_normal(3)
            p /= np.linalg.norm(p)
            if (np.arccos(centres @ p) > 1.6 * (WIDTHS[kind] + WIDTHS[kinds])).all():
                centres, kinds = np.vstack([centres, p]), np.append(kinds, kind)
                break
    return centres, kinds


def curvatures(x: Any, times: Any, F: np.ndarray) -> Any:
    """Twice the mean curvatures after diffusion, (n, k), one column for each time t: (M - t L) h = -(L x) · normal."""
    L, M = cotan_laplacian(x, F)
    bent = -np.sum((L @ x) * vertex_normals(x, F), axis=1)
    return np.stack([geoopt.solve(M - times[k] * L, bent) for k in range(times.shape[0])], axis=1)


class Network(torch.nn.Module):
    """What vertices are on, as logits (n, 3), by their diffused curvatures. times : at the start, (k,) [m²]"""

    def __init__(self, times: np.ndarray, are_learned: bool):
        super().__init__()
        torch.manual_seed(0)
        self.logarithms = torch.nn.Parameter(torch.tensor(np.log(times)), requires_grad=are_learned)
        self.layers = torch.nn.Sequential(
            *(torch.nn.Linear(len(times), 32), torch.nn.SiLU()),
            *(torch.nn.Linear(32, 32), torch.nn.SiLU()),
            torch.nn.Linear(32, KINDS),
        ).double()

    def forward(self, features: Any, V: np.ndarray) -> torch.Tensor:
        return self.layers(features(torch.tensor(V), self.logarithms.exp()) / 5)  # numbers of about 1


def train(network: Network, features: Any, shapes: list, epochs: int) -> np.ndarray:
    """The mean loss of each epoch. features : of the mesh of all shapes"""
    groups = [{"params": network.layers.parameters(), "lr": 0.01}, {"params": [network.logarithms], "lr": 0.1}]
    optimizer = torch.optim.Adam(groups)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    count = np.bincount(np.concatenate([label for _, label in shapes]), minlength=KINDS)
    loss_of = torch.nn.CrossEntropyLoss(weight=torch.tensor(1 / count))  # all kinds count the same
    losses = np.zeros(epochs)
    for epoch in range(epochs):
        for V, label in shapes:
            optimizer.zero_grad()
            loss = loss_of(network(features, V), torch.tensor(label))
            loss.backward()
            optimizer.step()
            losses[epoch] += loss.item() / len(shapes)
        slower.step()
    return losses


def answers(network: Network, features: Any, V: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network(features, V).argmax(dim=1).numpy()


def accuracy(found: np.ndarray, label: np.ndarray) -> float:
    """The share of vertices that are right, as the mean over the kinds: a guess is right in a third."""
    return float(np.mean([np.mean(found[label == kind] == kind) for kind in range(KINDS)]))


def draw(V: np.ndarray, F: np.ndarray, labels: list[np.ndarray], path: Path) -> None:
    """A shape three times, coloured by labels."""
    ps = start((1800, 560))
    for i, label in enumerate(labels):
        drawn = ps.register_surface_mesh(str(i), V + GAP * i * np.eye(3)[0], F, smooth_shade=True)
        drawn.add_color_quantity("label", COLOURS[label], enabled=True)
    ps.set_vertical_fov_degrees(12)
    ps.look_at((GAP, 0, 12.7), (GAP, 0, 0))
    shoot(ps, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=4000, help="of the shapes to learn from")
    parser.add_argument("--shapes", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--picture", type=Path, help="a PNG file to write: what is true, and what two networks say")
    given = parser.parse_args()
    sphere, F = icosphere(given.vertices)
    shapes = [shape(sphere, seed) for seed in range(given.shapes)]
    features = geoopt.torch.function(curvatures, sphere, START, F)
    other, G = bumpy(given.vertices * 3 // 2)  # other triangles
    unseen, label = shape(other / np.linalg.norm(other, axis=1, keepdims=True), given.shapes)
    features_of_unseen = geoopt.torch.function(curvatures, unseen, START, G)
    labels = [label]
    networks = {"learned": Network(START, True), "fixed": Network(START, False), "none": Network(NEVER, False)}
    for name, network in networks.items():
        network(features, sphere).sum().backward()  # prepares the programs
        begin = time.perf_counter()
        losses = train(network, features, shapes, given.epochs)
        step = 1e3 * (time.perf_counter() - begin) / (len(shapes) * given.epochs)
        labels.append(answers(network, features_of_unseen, unseen))
        times = " ".join(f"{t:.2g}" for t in network.logarithms.exp().tolist())
        print(f"times {name}: {times} m²; loss {losses[0]:.2f}, then {losses[-1]:.2f}; {step:.0f} ms a step")
        print(f"  right on the unseen shape: {accuracy(labels[-1], label):.0%}")
    if given.picture:
        draw(unseen, G, [labels[0], labels[1], labels[3]], given.picture)


if __name__ == "__main__":
    main()
