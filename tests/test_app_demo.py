"""The demo: the curvature that it draws is that of the surface, and the picture has all of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from geoopt.apps import demo, picture
from geoopt.errors import PictureError
from geoopt.meshes import bumpy, icosphere
from geoopt.meshes import cloth as grid
from geoopt.operators import cotan_laplacian


def curvature(V, F):
    return demo.mean_curvature(V, F, *cotan_laplacian(V, F))


def test_of_a_sphere_it_is_the_inverse_radius():
    V, F = icosphere(3000)
    np.testing.assert_allclose(curvature(3 * V, F), 1 / 3, rtol=0.15)


def test_boundaries_have_that_of_their_neighbours():
    V, F = icosphere(3000)
    half = F[(V[F][:, :, 2] > 0).all(axis=1)]
    used = np.unique(half)
    np.testing.assert_allclose(curvature(V, half)[used], 1, rtol=0.15)
    flat = grid(100)
    np.testing.assert_allclose(curvature(*flat), 0, atol=1e-11)
    np.testing.assert_array_equal(curvature(V[F[0]], np.array([[0, 1, 2]])), 0)  # nothing is inside


@pytest.fixture
def pixels(tmp_path):
    from PIL import Image

    def rendered(V, F, values, **how):
        path = tmp_path / "picture.png"
        try:
            picture.render(V, F, values, "values", path, **how)
        except PictureError as error:
            pytest.skip(f"no OpenGL: {error}")
        return np.asarray(Image.open(path).convert("RGB"), int)

    return rendered


@pytest.mark.parametrize("stretch", [(1, 1, 1), (9, 1, 1), (1, 9, 1), (1, 1, 9), (1e-9, 2e-9, 1e-9), (1e9, 1e9, 3e9)])
def test_all_of_a_mesh_is_in_the_picture(pixels, stretch):
    V, F = bumpy(500)
    V = V * stretch + np.ptp(V * stretch, axis=0).max() * np.array([1e5, 3, 0])
    image = pixels(V, F, np.zeros(len(V)))
    is_drawn = (image < 250).any(axis=2)
    is_drawn[:, int(0.9 * image.shape[1]) :] = False  # where the colours' meaning is
    border = np.concatenate([is_drawn[0], is_drawn[-1], is_drawn[:, 0], is_drawn[:, int(0.9 * image.shape[1]) - 1]])
    rows, columns = (np.flatnonzero(is_drawn.any(axis=axis)) for axis in (1, 0))
    fills = np.ptp(rows) / image.shape[0], np.ptp(columns) / image.shape[1]
    assert not border.any() and max(fills) > 0.5
    assert image[is_drawn].max() > 60  # in light


def test_it_stands_upright_and_shows_both_sides(pixels):
    """A stump, flat on the ground, whose height is along the second or third axis; its front has larger values."""
    V = np.array([[x, y, z] for x in (0.0, 2) for y in (0.0, 1) for z in (0.0, 1)])
    F = ConvexHull(V).simplices
    a, b, c = (V[F[:, i]] for i in range(3))
    inward = np.sum(np.cross(b - a, c - a) * (a - V.mean(axis=0)), axis=1) < 0
    F[inward] = F[inward, ::-1]
    values = V[:, 2].copy()
    above = V[:, 1] == 1
    V[above] = [1, 1, 0.5] + 0.5 * (V[above] - [1, 1, 0.5])  # narrower
    image = pixels(V, F, values)
    turned = pixels(V[:, [0, 2, 1]] * [1, -1, 1], F, values)
    np.testing.assert_allclose(image, turned, atol=8)
    left, right = image[:, :800], image[:, 800:1400]
    yellow, purple = ((lambda p: p[..., 1] > p[..., 2] + 60), (lambda p: p[..., 2] > p[..., 1] + 40))
    assert yellow(left).sum() > 2 * yellow(right).sum() and purple(right).sum() > 2 * purple(left).sum()


def test_colours_do_not_tell_rounding_apart(pixels):
    V, F = grid(400)
    noise = 1e-13 * np.random.default_rng(0).normal(size=len(V))
    plain, told = (pixels(V, F, noise, least=least, both_sides=False, up="y") for least in (1e-3, 0))
    assert np.ptp(plain[300:400, 450:550], axis=(0, 1)).max() < 10 < np.ptp(told[300:400, 450:550], axis=(0, 1)).max()
