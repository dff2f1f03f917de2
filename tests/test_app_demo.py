"""The demo: the curvature that it draws is that of the surface, and the picture has all of it."""

from __future__ import annotations

import numpy as np
import pytest

from geoopt.apps import demo, picture
from geoopt.errors import PictureError
from geoopt.meshes import bumpy, icosphere
from geoopt.meshes import cloth as grid
from geoopt.operators import cotan_laplacian


def curvature(V, F):
    return demo.mean_curvature(V, F, *cotan_laplacian(V, F))


def test_of_a_sphere_it_is_twice_the_inverse_radius():
    V, F = icosphere(3000)
    np.testing.assert_allclose(curvature(3 * V, F), 2 / 3, rtol=0.15)


def test_boundaries_have_that_of_their_neighbours():
    V, F = icosphere(3000)
    half = F[(V[F][:, :, 2] > 0).all(axis=1)]
    used = np.unique(half)
    np.testing.assert_allclose(curvature(V, half)[used], 2, rtol=0.15)
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
    border = np.concatenate([is_drawn[0], is_drawn[-1], is_drawn[:, 0], is_drawn[:, -1]])
    rows, columns = (np.flatnonzero(is_drawn.any(axis=axis)) for axis in (1, 0))
    fills = np.ptp(rows) / image.shape[0], np.ptp(columns) / image.shape[1]
    assert not border.any() and max(fills) > 0.6
    assert image[is_drawn].max() > 60  # in light


def test_colours_do_not_tell_rounding_apart(pixels):
    V, F = grid(400)
    noise = 1e-13 * np.random.default_rng(0).normal(size=len(V))
    plain, told = pixels(V, F, noise, least=1e-3), pixels(V, F, noise)
    assert np.ptp(plain[300:400, 450:550], axis=(0, 1)).max() < 10 < np.ptp(told[300:400, 450:550], axis=(0, 1)).max()
