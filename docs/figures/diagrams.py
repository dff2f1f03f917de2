"""The drawings of the page "How it works": six triangles, and which kernel reads what of them."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

ANGLE = np.arange(6) * np.pi / 3
V = np.concatenate([[[0.0, 0.0]], np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=1)])
F = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5], [0, 5, 6], [0, 6, 1]])
TRIANGLE, VERTEX, LINE = "#dbe9f6", "#2b6cb0", "#4a5568"


def six_triangles(path: Path) -> None:
    figure, axes = plt.subplots(figsize=(4.2, 3.7))
    axes.set_aspect("equal")
    axes.axis("off")
    for number, face in enumerate(F):
        axes.add_patch(plt.Polygon(V[face], facecolor=TRIANGLE, edgecolor=LINE, linewidth=1.2))
        axes.text(*V[face].mean(axis=0), f"triangle {number}", ha="center", va="center", fontsize=8, color=LINE)
    for number, place in enumerate(V):
        axes.plot(*place, "o", color=VERTEX, markersize=15)
        axes.text(*place, str(number), ha="center", va="center", color="white", fontsize=9, weight="bold")
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(-1.0, 1.0)
    _save(figure, path)


def two_kernels(path: Path) -> None:
    """Positions, the members of kernel 0, and those of kernel 1, from left to right."""
    figure, axes = plt.subplots(figsize=(8, 4.2))
    axes.axis("off")
    vertices, triangles = np.linspace(6, 0, 7), np.linspace(5.5, 0.5, 6)
    for number, face in enumerate(F):
        for vertex in face:
            axes.plot([0.9, 3.15], [vertices[vertex], triangles[number]], color="#a0aec0", linewidth=0.9, zorder=0)
            axes.plot([4.85, 6.95], [triangles[number], vertices[vertex]], color="#a0aec0", linewidth=0.9, zorder=0)
    for number, y in enumerate(vertices):
        _box(axes, 0.5, y, f"V[{number}]", "#edf2f7")
        _box(axes, 7.8, y, f"area of vertex {number}", "#c6f6d5", 0.85)
    for number, y in enumerate(triangles):
        _box(axes, 4.0, y, f"third of triangle {number}", TRIANGLE, 0.85)
    heads = ((0.5, "variable"), (4.0, "kernel 0: 6 members\nvalues are stored"), (7.8, "kernel 1: 7 members\nresult"))
    for x, text in heads:
        axes.text(x, 6.75, text, ha="center", va="bottom", fontsize=10, color=LINE, weight="bold")
    axes.set_xlim(-0.1, 8.7)
    axes.set_ylim(-0.5, 7.6)
    _save(figure, path)


def _box(axes: plt.Axes, x: float, y: float, text: str, colour: str, half: float = 0.4) -> None:
    axes.add_patch(plt.Rectangle((x - half, y - 0.32), 2 * half, 0.64, facecolor=colour, edgecolor=LINE, linewidth=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=8)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    plt.close(figure)
