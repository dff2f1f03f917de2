"""Pictures of surfaces, drawn by polyscope without a window."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import charts
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageChops

import geoopt
from geoopt.apps.demo import mean_curvature
from geoopt.apps.parametrize import double_areas, open_surface, parametrize
from geoopt.apps.picture import render, render_layout, render_parts
from geoopt.distributed.division import divided
from geoopt.meshes import bumpy, icosphere, load, torus
from geoopt.operators import cotan_laplacian, mean_curvature_flow

CODE = """V, F = load("armadillo.obj")

laplacian = geoopt.compile(cotan_laplacian, V, F)

for V in animation:
    L, M = laplacian(V)"""


def drawn(V: np.ndarray, F: np.ndarray, values: np.ndarray, least: float = 0) -> Image.Image:
    """The surface coloured by a value at each vertex, cut out of its ground."""
    file = Path(tempfile.mkdtemp()) / "surface.png"
    render(V, F, values, "values", file, least)
    return cut_out(Image.open(file).convert("RGB"))


def cut_out(picture: Image.Image, margin: int = 12) -> Image.Image:
    ground = Image.new("RGB", picture.size, picture.getpixel((2, 2)))
    left, top, right, bottom = ImageChops.difference(picture, ground).point(lambda v: 255 * (v > 12)).getbbox()
    box = (left - margin, top - margin, right + margin, bottom + margin)
    return picture.crop((max(box[0], 0), max(box[1], 0), min(box[2], picture.width), min(box[3], picture.height)))


def beside(pictures: list[Image.Image], path: Path, height: int = 420) -> None:
    """Pictures of one height in a row on white."""
    scaled = [p.resize((round(p.width * height / p.height), height), Image.Resampling.LANCZOS) for p in pictures]
    row = Image.new("RGB", (sum(p.width for p in scaled) + 24 * (len(scaled) - 1), height), "white")
    x = 0
    for picture in scaled:
        row.paste(picture, (x, 0))
        x += picture.width + 24
    row.save(path, quality=82, method=6)


def curvature(V: np.ndarray, F: np.ndarray) -> np.ndarray:
    """|M⁻¹ L V|, as pictures call it."""
    return 2 * mean_curvature(V, F, *cotan_laplacian(V, F))


def first(path: Path) -> None:
    V, F = bumpy(40_000)
    beside([drawn(V, F, curvature(V, F))], path, 560)


def generated(path: Path) -> None:
    meshes = [bumpy(20_000), icosphere(2_500), torus(2_500)]
    pictures = []
    for V, F in meshes:
        pictures.append(drawn(V, F, V[:, 2], 1e-3))
    beside(pictures, path, 300)


def flow(path: Path) -> None:
    V, F = bumpy(20_000)
    step, pictures = geoopt.compile(mean_curvature_flow, V, F, 0.01), []
    for count in range(11):
        if count in (0, 1, 3, 10):
            pictures.append(drawn(V, F, np.linalg.norm(V, axis=1), 0.2))
        V = step(V, 0.01)
    beside(pictures, path, 320)


def layout(path: Path) -> None:
    V, F = open_surface(8_000)
    found = parametrize(V, F)
    folder = Path(tempfile.mkdtemp())
    area = np.linalg.norm(np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]), axis=1)
    values = np.log2(double_areas(found.end, F) / area)
    render_layout(V, F, found.end, values, folder / "flat.png", folder / "checkered.png")
    beside([cut_out(Image.open(folder / name).convert("RGB")) for name in ("checkered.png", "flat.png")], path, 420)


def parts(path: Path) -> None:
    V, F, *_ = load(Path(os.environ["GEOOPT_MESHES"]) / "armadillo.obj")
    file = Path(tempfile.mkdtemp()) / "parts.png"
    render_parts(V, F, divided(F, len(V), 12).of_elements, file)
    beside([cut_out(Image.open(file).convert("RGB"))], path, 560)


def readme(path: Path) -> None:
    """A real mesh, the operator and the code that runs it, and what was measured for it."""
    V, F = load(Path(os.environ["GEOOPT_MESHES"]) / "armadillo.obj")
    record = charts.latest("cotan", mesh="armadillo.obj", dtype="float64", lanes=0)
    times = charts.milliseconds(record)
    figure = plt.figure(figsize=(11, 4.2))
    surface = figure.add_axes((0.0, 0.0, 0.31, 1.0))
    surface.imshow(drawn(V, F, np.log(1e-3 + curvature(V, F))))
    surface.axis("off")
    ink = "#1a202c"
    figure.text(0.35, 0.9, f"{len(V):,} vertices, coloured by |M⁻¹ L V|", fontsize=12, color=charts.GREY)
    figure.text(0.35, 0.46, CODE, fontsize=12.5, family="monospace", color=ink, linespacing=1.35)
    chosen = {name: times[name] for name in ("libigl", "NumPy + SciPy", "geoopt")}
    axes = figure.add_axes((0.47, 0.1, 0.5, 0.27))
    charts.bars(axes, chosen, 12, charts.ratios_of(record))
    axes.set_xscale("linear")
    axes.set_xlim(0, 1.4 * max(chosen.values()))
    axes.set_xticks([])
    note = "L and M for new positions, one thread, double precision; × how many times as long as geoopt"
    figure.text(0.35, 0.03, note, fontsize=10, color=charts.GREY)
    file = Path(tempfile.mkdtemp()) / "readme.png"
    figure.savefig(file, dpi=130, facecolor="white")
    plt.close(figure)
    Image.open(file).convert("RGB").save(path, quality=84, method=6)
