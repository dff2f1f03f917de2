"""Laying disks flat: Tutte's embedding is one, steps end before flips, the minimum is one, other meshes are refused."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.apps import parametrize as job
from geoopt.errors import MeshError
from geoopt.meshes import bumpy, cloth, load, torus
from geoopt.operators import symmetric_dirichlet_energy

from .conftest import REAL_MESHES, two_triangles, with_unreferenced
from .test_cli import geoopt as command


def cut_bumpy():
    return job.open_surface(400)


@pytest.mark.parametrize("mesh", [two_triangles, lambda: cloth(60), cut_bumpy], ids=["two", "cloth", "bumpy"])
def test_tuttes_embedding_has_no_flips_and_the_area_of_its_circle(mesh):
    V, F = mesh()
    x = job.tutte(V, F)
    assert (job.double_areas(x, F) > 0).all()
    radius = np.linalg.norm(x, axis=1).max()
    assert np.pi * radius**2 == pytest.approx(job.double_areas(V, F).sum() / 2)


def test_a_flat_mesh_is_laid_flat_without_distortion():
    V, F = cloth(80)
    turned = V @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    found = job.parametrize(turned, F)
    assert found.minimum.converged and found.minimum.energy == pytest.approx(1)
    np.testing.assert_allclose(found.growth(V, F), 0, atol=1e-6)


def check_layout(V, F, found, most):
    assert found.minimum.converged and found.minimum.iterations <= most
    assert (job.double_areas(found.end, F) > 0).all()
    slope = geoopt.gradient(lambda x: symmetric_dirichlet_energy(x, V, F))(found.end)
    assert np.abs(slope).max() < 1e-6 * np.sqrt(job.double_areas(V, F).sum())
    assert found.minimum.energy < 0.9 * found.minimum.energies[0]


def test_curved_meshes_are_laid_flat():
    V, F = cut_bumpy()
    check_layout(V, F, job.parametrize(V, F), 15)


@pytest.mark.skipif(not (REAL_MESHES / "camelhead.off").exists(), reason=f"no camelhead.off in {REAL_MESHES}")
def test_a_real_mesh_is_laid_flat():
    V, F = load(REAL_MESHES / "camelhead.off")
    check_layout(V, F, job.parametrize(V, F), 29)


def test_the_first_flip_is_where_an_area_is_zero():
    """For random steps: all areas are positive just before, one is not just after."""
    V, F = cloth(60)
    x = V[:, :2]
    for seed in range(20):
        d = np.random.default_rng(seed).normal(size=x.shape) * (seed % 5)
        t = job.first_flip(x, d, F)
        if np.isinf(t):
            assert not d.any()
            continue
        assert (job.double_areas(x + t * (1 - 1e-9) * d, F) > 0).all()
        assert (job.double_areas(x + t * (1 + 1e-9) * d, F) < 0).any()


def test_growing_never_flips_and_shrinking_does_at_the_end():
    V, F = cloth(30)
    x = V[:, :2]
    assert job.first_flip(x, x, F) == np.inf
    assert job.first_flip(x, -x, F) == pytest.approx(1, rel=1e-6)


def book_turned():
    """Two triangles that share an edge in one direction."""
    return np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), np.array([[0, 1, 2], [1, 2, 3]])


@pytest.mark.parametrize(
    "mesh, what",
    [
        (bumpy(100), "0 boundaries"),
        (torus(100), "0 boundaries"),
        (with_unreferenced(), "3 vertices belong to no triangle, vertex 42 first"),
        (book_turned(), "orient all faces alike"),
        ((np.zeros((3, 3)), np.array([[0, 1, 2]])), "zero area"),
    ],
    ids=["sphere", "torus", "unreferenced", "orientation", "no area"],
)
def test_what_is_no_disk_is_refused(mesh, what):
    with pytest.raises(MeshError, match=what):
        job.parametrize(*mesh)


def test_the_command_prints_the_steps_and_draws(tmp_path):
    run = command("parametrize", "--vertices", 300, "--out", "flat", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "converged" in run.stdout and "flipped triangles: 0" in run.stdout
    if "no pictures" not in run.stdout:
        from PIL import Image

        for name in ("layout", "checkerboard"):
            assert np.ptp(np.asarray(Image.open(tmp_path / "flat" / f"{name}.png").convert("RGB"), float)) > 100
    again = command("parametrize", "--out", "flat", cwd=tmp_path)
    assert again.returncode == 2 and "flat exists" in again.stderr
