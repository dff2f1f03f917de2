"""Lit surfaces in Matplotlib, drawn pixel by pixel with NumPy: no OpenGL is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

PIXELS = 520  # of the longer side of a picture
FINER = 2  # times as many are computed along both sides, and averaged
LIGHT = np.array([-0.42, 0.5, 0.76])  # where it comes from, as the camera sees it: right, up, toward the camera
PLAIN, DARK = np.array([0.66, 0.73, 0.82]), np.array([0.2, 0.27, 0.38])


def show(axes: Any, V: np.ndarray, F: np.ndarray, values: Any = None, look=(-60, 25), **colours: Any) -> ScalarMappable:
    """Draw a surface in the units of its positions (n, 3), and return what a colour bar needs.

    values : at the vertices: (n,) for colours; (n, 2) for a checkerboard of squares of side 1; (n, 3) for red, green
        and blue
    look : azimuth and elevation of the camera [degrees]; the third axis is upward
    colours : of values (n,): cmap, limits, and bands, of which every other one is darker
    """
    a, b = np.radians(look)
    right, up = [-np.sin(a), np.cos(a), 0], [-np.cos(a) * np.sin(b), -np.sin(a) * np.sin(b), np.cos(b)]
    x = V @ np.array([right, up, np.cross(right, up)]).T
    extent = np.ptp(x[:, :2], axis=0)
    pixel = extent.max() / (FINER * PIXELS)
    width, height = size = FINER * (np.ceil(extent / (FINER * pixel)).astype(int) + 4)
    corner = x[:, :2].min(axis=0) - 2 * FINER * pixel
    face, weight, place = visible(((x - [*corner, 0]) / pixel)[F], size)
    normal = np.zeros_like(x)
    np.add.at(normal, F, np.cross(x[F[:, 1]] - x[F[:, 0]], x[F[:, 2]] - x[F[:, 0]])[:, None])

    def at_pixels(values: Any) -> np.ndarray:
        return np.einsum("pc,pc...->p...", weight, np.asarray(values)[F[face]])

    scale, colour = coloured(None if values is None else at_pixels(values), **colours)
    image = np.zeros((height * width, 4))
    image[place] = np.column_stack([lit(at_pixels(normal), colour), np.ones(len(place))])
    mean = image.reshape(height // FINER, FINER, width // FINER, FINER, 4).mean(axis=(1, 3))
    mean[..., :3] /= np.maximum(mean[..., 3:], 1e-9)
    ends = np.column_stack([corner, corner + size * pixel]).ravel()
    axes.imshow(mean, origin="lower", extent=ends, interpolation="antialiased")
    axes.set_axis_off()
    return scale


def visible(corners: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each pixel that shows something: the triangle, the weights of its corners, and the pixel's number.

    corners : (m, 3, 3) in pixels, the third coordinate toward the camera;  size : width and height
    """
    low = np.ceil(corners[:, :, :2].min(axis=1) - 0.5).astype(int)
    width, height = (np.floor(corners[:, :, :2].max(axis=1) - 0.5).astype(int) - low + 1).T
    face = np.repeat(np.arange(len(corners)), width * height)
    number = np.arange(len(face)) - np.repeat(np.cumsum(width * height) - width * height, width * height)
    x, y = low[face, 0] + number % width[face], low[face, 1] + number // width[face]
    a, b, c = (corners[face, i, :2] - np.column_stack([x, y]) - 0.5 for i in range(3))
    weight = np.stack([p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0] for p, q in ((b, c), (c, a), (a, b))], axis=1)
    total = weight.sum(axis=1)
    inside = np.flatnonzero((weight * np.sign(total)[:, None] >= 0).all(axis=1) & (total != 0))
    face, weight, place = face[inside], weight[inside] / total[inside, None], (y * size[0] + x)[inside]
    depth = np.sum(weight * corners[face, :, 2], axis=1)
    order = np.lexsort((depth, place))
    front = order[np.append(place[order][1:] != place[order][:-1], True)]
    return face[front], weight[front], place[front]


def coloured(at: Any, cmap="viridis", limits=(0.0, 1.0), bands=0.0) -> tuple[ScalarMappable, np.ndarray]:
    """What values in colours mean, and red, green and blue (p, 3) of values (p, ...); see `show`."""
    scale = ScalarMappable(Normalize(*limits), cmap)
    if at is None:
        return scale, PLAIN
    if at.ndim == 2:
        return scale, at if at.shape[1] == 3 else np.where(np.floor(at).sum(axis=1)[:, None] % 2, DARK, 1.0)
    is_dark = at // bands % 2 == 1 if bands else np.zeros(len(at), bool)
    return scale, scale.to_rgba(at)[:, :3] * np.where(is_dark, 0.78, 1.0)[:, None]


def lit(normal: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Colours (p, 3) in the light, the same from both sides of a surface. normal : (p, 3), of any length"""
    normal = normal / (np.linalg.norm(normal, axis=1) * np.where(normal[:, 2] < 0, -1, 1))[:, None]
    light = LIGHT / np.linalg.norm(LIGHT)
    half = light + np.array([0, 0, 1])
    gleam = 0.13 * np.clip(normal @ half / np.linalg.norm(half), 0, 1) ** 40
    return np.clip((0.48 + 0.5 * np.clip(normal @ light, 0, 1))[:, None] * colour + gleam[:, None], 0, 1)
