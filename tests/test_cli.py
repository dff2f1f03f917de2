"""The command line: the main job, saved operators, and one-line errors that write nothing."""

from __future__ import annotations

import re
import subprocess
import sys

import igl
import meshio
import numpy as np
import pytest
import scipy.sparse as sp

from geoopt import cli
from geoopt.meshes import bumpy, tetrahedral_ball
from geoopt.operators import cotan_laplacian


def geoopt(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "geoopt", *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )


def refusal(monkeypatch, capfd, cwd, *arguments):
    """What a command that is refused writes to its standard error; without a process of its own."""
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(sys, "argv", ["geoopt", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    return capfd.readouterr().err


@pytest.fixture
def folder(tmp_path):
    import trimesh

    V, F = bumpy(200)
    trimesh.Trimesh(V, F, process=False).export(tmp_path / "mesh.off", digits=17)
    (tmp_path / "broken.obj").write_text("v 0 0 0\nv 1 0 0\nf 1 2 9\n")
    (tmp_path / "tets.mesh").write_text(
        "MeshVersionFormatted 1\nDimension\n3\nVertices\n4\n0 0 0 0\n1 0 0 0\n0 1 0 0\n0 0 1 0\n"
        "Tetrahedra\n1\n1 2 3 4 0\nEnd\n"
    )
    (tmp_path / "flat.off").write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n2 0 0\n3 0 1 2\n3 0 1 3\n")
    for name in ("there.npz", "there.png"):
        (tmp_path / name).write_text("precious")
    return tmp_path


def test_demo_checks_times_and_draws(folder):
    run = geoopt("demo", "--vertices", 500, "--rounds", 2, cwd=folder)
    assert run.returncode == 0, run.stderr
    for word in ("prepare: trace", "peak memory", "geoopt, 1 thread", "NumPy + SciPy", "libigl", "largest difference"):
        assert word in run.stdout
    assert "boundary" not in run.stdout  # it has none
    picture = folder / "curvature.png"
    if not picture.exists():
        assert "no picture" in run.stdout and "EGL" in run.stdout
        return
    from PIL import Image

    pixels = np.asarray(Image.open(picture).convert("RGB"), float)
    assert pixels.shape == (800, 1600, 3)
    for side in (pixels[300:500, 400:700], pixels[300:500, 900:1200]):
        assert len(np.unique(side.reshape(-1, 3), axis=0)) > 500  # a surface, not a blank page


def test_demo_of_a_mesh_file(folder):
    run = geoopt("demo", "mesh.off", "--rounds", 1, "--out", "other.png", cwd=folder)
    assert run.returncode == 0 and "mesh.off: 218 vertices" in " ".join(run.stdout.split())


def test_operator_writes_both_matrices(folder):
    from geoopt.meshes import load

    run = geoopt("operator", "cotan", "mesh.off", "--out", "L.npz", cwd=folder)
    assert run.returncode == 0, run.stderr
    L, M = cotan_laplacian(*load(folder / "mesh.off"))
    assert abs(sp.load_npz(folder / "L.npz") - L).max() < 1e-12
    assert abs(sp.load_npz(folder / "L-mass.npz") - M).max() < 1e-12
    again = geoopt("operator", "cotan", "mesh.off", "--out", "L.npz", cwd=folder)
    assert again.returncode == 2 and "L.npz exists" in again.stderr
    assert geoopt("operator", "cotan", "mesh.off", "--out", "L.npz", "--force", cwd=folder).returncode == 0


ERRORS = {
    "no such file": ("operator", "cotan", "none.obj", "--out", "a.npz"),
    "unknown mesh format": ("operator", "cotan", "there.npz", "--out", "a.npz"),
    "broken.obj": ("operator", "cotan", "broken.obj", "--out", "a.npz"),
    "face 1 has zero area": ("operator", "cotan", "flat.off", "--out", "a.npz"),
    "needs triangles": ("operator", "cotan", "tets.mesh", "--out", "a.npz"),
    "there.npz exists": ("operator", "cotan", "mesh.off", "--out", "there.npz"),
    "must end in .npz": ("operator", "cotan", "mesh.off", "--out", "a.txt"),
    "there is no folder": ("operator", "cotan", "mesh.off", "--out", "no/a.npz"),
    "must end in .png": ("demo", "mesh.off", "--out", "a"),
    "is no folder": ("parametrize", "mesh.off", "--out", "there.npz", "--force"),
    "demo: no such file": ("demo", "none.obj", "--out", "there.png"),
    "there.png exists": ("demo", "mesh.off", "--out", "there.png"),
    "missing a required argument: 'rest'; give a function of positions and elements": ("view", "spring_energy"),
    "too many positional arguments": ("view", "edges"),
    "arap_energy fails on this mesh: AttributeError": ("view", "arap_energy"),
    "at least 8": ("demo", "--vertices", "3"),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_are_one_line_and_write_nothing(folder, message, monkeypatch, capfd):
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    error = refusal(monkeypatch, capfd, folder, *ERRORS[message])
    assert message.split(": ")[-1] in error and len(error.strip().splitlines()) == 1
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_of_a_file_with_both_the_command_takes_what_it_needs(folder):
    V, T = tetrahedral_ball(200)
    sides = igl.boundary_facets(T)[0]
    meshio.write(folder / "both.vtu", meshio.Mesh(V, [("tetra", T), ("triangle", sides)]))
    run = geoopt("operator", "cotan", "both.vtu", "--out", "both.npz", cwd=folder)
    assert run.returncode == 0 and f"{len(sides)} triangles without the {len(T)} tetrahedra beside them" in run.stderr
    L = sp.load_npz(folder / "both.npz")
    np.testing.assert_allclose((L - igl.cotmatrix(V, sides)).toarray(), 0, atol=1e-12)
    run = geoopt("view", "dual_laplacian", "both.vtu", "--stage", "trace", cwd=folder)
    assert run.returncode == 0 and "are sides of tetrahedra, and left out" in run.stderr
    meshio.write(folder / "mixed.vtu", meshio.Mesh(V, [("tetra", T[1:]), ("hexahedron", np.arange(8)[None])]))
    run = geoopt("view", "dual_laplacian", "mixed.vtu", "--stage", "trace", cwd=folder)
    assert run.returncode == 0 and f"{len(T) - 1} tetrahedra without the other cells beside them" in run.stderr
    run = geoopt("operator", "cotan", "mixed.vtu", "--out", "mixed.npz", cwd=folder)
    assert run.returncode == 2 and "and no triangles; igl.boundary_facets gives those" in run.stderr
    meshio.write(folder / "curved.vtu", meshio.Mesh(V, [("triangle6", np.arange(6)[None])]))
    run = geoopt("view", "face_areas", "curved.vtu", "--stage", "trace", cwd=folder)
    assert run.returncode == 0 and "1 triangle of 6 nodes: of cells of higher order, the corners" in run.stderr


def test_help_lists_the_commands(folder):
    assert "demo" in geoopt("--help", cwd=folder).stdout
    assert "--force" in geoopt("operator", "cotan", "--help", cwd=folder).stdout


def test_without_opengl_the_demo_still_succeeds(folder, monkeypatch):
    monkeypatch.setenv("EGL_PLATFORM", "nothing")
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent.json")
    run = geoopt("demo", "--vertices", 100, "--rounds", 1, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "no picture: cannot render without a display" in " ".join(run.stdout.split())
    assert not (folder / "curvature.png").exists()


def test_view_prints_a_stage(folder):
    run = geoopt("view", "cotan_laplacian", "mesh.off", "--stage", "simplify", cwd=folder)
    assert run.returncode == 0 and "kernel 0: level 1, 432 members" in run.stdout and "sqrt" in run.stdout
    run = geoopt("view", "numpy:nothing", cwd=folder)
    assert run.returncode == 2 and "OPERATOR" not in run.stderr and "MODULE:FUNCTION" in run.stderr
    run = geoopt("view", "dual_laplacian", "--vertices", 27, "--stage", "place", cwd=folder)
    assert run.returncode == 0 and "kernel 0: level 1, 48 members" in run.stdout


def test_cache_is_shown_and_cleared(folder, monkeypatch):
    monkeypatch.setenv("GEOOPT_CACHE_DIR", str(folder / "code"))
    geoopt("operator", "cotan", "mesh.off", "--out", "L.npz", cwd=folder)
    shown = geoopt("cache", cwd=folder)
    assert shown.returncode == 0 and "programs" in shown.stdout and "1.1 GB" in shown.stdout
    cleared = geoopt("cache", "--clear", cwd=folder)
    assert re.search(r"code: \d files removed", cleared.stdout) and "code: 0 files" not in cleared.stdout
    assert not [*(folder / "code").iterdir()]
