"""The scripts of the gallery run at small sizes, and what each of them shows obeys a law."""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import geoopt
from geoopt.operators import dirichlet_energy, edges, neo_hookean_energy

pytest.importorskip("matplotlib", reason="the gallery needs matplotlib: pip install 'geoopt-compiler[dev]'")

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
SCRIPTS = sorted(p.stem for p in GALLERY.glob("*.py") if p.stem != "shaded")


@pytest.fixture
def run(monkeypatch):
    """Runs a script with meshes of about so many vertices, and gives its names."""
    import matplotlib
    import matplotlib.pyplot as plt

    def run(name, vertices, **settings):
        matplotlib.use("agg")
        monkeypatch.syspath_prepend(GALLERY)
        monkeypatch.setattr(sys, "argv", [name])
        monkeypatch.setenv("GALLERY_VERTICES", str(vertices))
        for key, value in settings.items():
            monkeypatch.setenv(f"GALLERY_{key.upper()}", str(value))
        import shaded

        monkeypatch.setattr(shaded, "PIXELS", 40)
        names = runpy.run_path(str(GALLERY / f"{name}.py"))
        assert plt.get_fignums(), "no picture"
        return names

    yield run
    plt.close("all")
    sys.modules.pop("shaded", None)


def signed_areas(x, F):
    a, b = x[F[:, 1]] - x[F[:, 0]], x[F[:, 2]] - x[F[:, 0]]
    return 0.5 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])


def test_every_script_is_tested_here():
    tests = [name.removeprefix("test_") for name, _ in inspect.getmembers(sys.modules[__name__], inspect.isfunction)]
    assert set(SCRIPTS) <= set(tests) and len(SCRIPTS) == 12
    for name in SCRIPTS:
        code = (GALLERY / f"{name}.py").read_text().split('"""', 2)[2].splitlines()
        assert 20 <= sum(bool(line) and not line.startswith("#") for line in code) <= 60, name


def test_heat_distances(run):
    names = run("heat_distances", 600)
    assert names["error"].max() < 6  # cm, on a sphere of 1 m
    straight = np.linalg.norm(names["V"] - names["V"][names["source"]], axis=1)
    assert names["found"].min() > -1e-9 and (names["found"] >= 0.8 * straight).all()


def test_curvature_flow(run):
    names = run("curvature_flow", 400)
    assert names["areas"] == sorted(names["areas"], reverse=True)
    volumes = [np.linalg.det(x[names["F"]]).sum() / 6 for x in (names["shapes"][0], names["shapes"][-1])]
    areas = names["areas"][0], names["areas"][-1]
    round_is_1 = [36 * np.pi * v**2 / a**3 for v, a in zip(volumes, areas, strict=True)]
    assert round_is_1[0] < 0.9 and 0.97 < round_is_1[1] < 1


def test_flat_maps(run):
    names = run("flat_maps", 400)
    for x in names["maps"].values():
        assert (signed_areas(x, names["F"]) > 0).all()
    found = names["found"]
    assert found.converged and (np.diff(found.energies) <= 1e-12 * found.energies[0]).all()
    spread = {name: np.std(growth) for name, growth in names["growth"].items()}
    assert spread["symmetric Dirichlet"] < 0.7 * spread["LSCM"]


def test_arap_poses(run):
    names = run("arap_poses", 300)
    for P, energies in names["poses"].values():
        assert (np.diff(energies) <= 1e-9 * energies[0]).all()
        np.testing.assert_allclose(P[names["left"]], names["V"][names["left"]], atol=1e-9)
    P, energies = names["pose"]([0, 0, 0], [0, 0, 0])
    np.testing.assert_allclose(P, names["V"], atol=1e-9)


def test_cloth_on_ball(run):
    names = run("cloth_on_ball", 200)
    x, E = names["x"], edges(names["F"])
    assert np.linalg.norm(x, axis=1).min() > 0.97 * names["RADIUS"]
    lengths = [np.linalg.norm(p[E[:, 1]] - p[E[:, 0]], axis=1) for p in (names["V"], x)]
    assert lengths[1].sum() < 1.05 * lengths[0].sum() and (lengths[1] < 1.3 * lengths[0]).all()
    assert x[:, 2].min() < 0 < x[:, 2].max()


def test_shell_buckles(run):
    names = run("shell_buckles", 400)
    rises = np.diff(names["energies"], prepend=0)
    assert (rises > 0).all()
    for depth, x in zip(names["DEPTHS"], names["shapes"], strict=True):
        np.testing.assert_allclose(x[names["top"], 2], 1 - depth, atol=1e-3)
        np.testing.assert_array_equal(x[names["rim"]], names["V"][names["rim"]])


def test_tetrahedral_elasticity(run):
    names = run("tetrahedral_elasticity", 216)
    X, T, x = names["X"], names["T"], names["minima"][-1].x
    volumes = [np.linalg.det(p[T[:, 1:]] - p[T[:, :1]]) / 6 for p in (X, x)]
    assert (volumes[1] > 0).all() and 0.7 < volumes[1].sum() / volumes[0].sum() < 1
    slope = geoopt.gradient(lambda x: neo_hookean_energy(x, X, T, names["MU"], names["LAMBDA"]))(x)
    free = abs(X[:, 2]) <= 0.75
    assert abs(slope[free]).max() < 1e-4 * abs(slope).max()
    np.testing.assert_allclose(names["largest_stretch"](X), 1)


def test_biharmonic_weights(run):
    names = run("biharmonic_weights", 400)
    np.testing.assert_allclose(names["weights"].sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(names["weights"][names["handles"]], np.eye(6), atol=1e-12)


def test_spectral_shapes(run):
    names = run("spectral_shapes", 400)
    V, F, M, values, functions = (names[n] for n in ("V", "F", "M", "values", "functions"))
    np.testing.assert_allclose(functions.T @ (M @ functions), np.eye(len(values)), atol=1e-8)
    energies = [dirichlet_energy(u, V, F) for u in functions.T]  # of functions whose mean square is 1
    np.testing.assert_allclose(2 * np.array(energies), values, atol=1e-8)


def test_gray_scott(run):
    names = run("gray_scott", 300, steps=40)
    u, v = names["u"], names["v"]
    assert u.min() > 0 and v.min() > -1e-3 and u.max() < 1.01
    later, mass, lost = names["step"](u, v)[1], names["mass"], names["FEED"] + names["DECAY"]
    np.testing.assert_allclose(mass @ later, mass @ (v + u * v * v - lost * v))  # diffusion only moves it


def test_poisson_editing(run):
    names = run("poisson_editing", 400)
    V, foot, edit = names["V"], names["foot"], names["edit"]
    np.testing.assert_allclose(names["results"]["as it was"], V, atol=1e-8)
    for x in names["results"].values():
        np.testing.assert_allclose(x[foot], V[foot], atol=1e-12)
    E = edges(names["F"])
    lengths = [np.linalg.norm(x[E[:, 1]] - x[E[:, 0]], axis=1).sum() for x in names["results"].values()]
    np.testing.assert_allclose(lengths, lengths[0], rtol=0.15)
    assert edit(V, names["still"]).shape == V.shape


def test_inverse_problem(run):
    names = run("inverse_problem", 150)
    assert names["history"][-1] < 0.01 * names["history"][0]
    load, along = names["found"].x, np.linspace(-1, 1, len(names["V"]))
    slope = names["loss"](load)[1] @ along
    ends = [names["loss"](load + h * along)[0] for h in (1e-4, -1e-4)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, rtol=1e-3, atol=1e-6)
