"""`geoopt arap` and `geoopt cloth` without a display: pictures, numbers, and one-line errors that write nothing."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from geoopt import devices
from geoopt.meshes import bumpy

from .conftest import with_unreferenced
from .test_cli import geoopt, refusal


@pytest.fixture
def folder(tmp_path):
    import trimesh

    for name, mesh in (("mesh", bumpy(200)), ("two", with_unreferenced())):
        trimesh.Trimesh(*mesh, process=False).export(tmp_path / f"{name}.off", digits=17)
    (tmp_path / "tiny.off").write_text("OFF\n3 1 0\n0 0 0\n1e-5 0 0\n0 1.5e-5 0\n3 0 1 2\n")
    (tmp_path / "book.off").write_text("OFF\n5 3 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n0 -1 0\n3 0 1 2\n3 0 1 3\n3 0 1 4\n")
    (tmp_path / "points.off").write_text("OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n")
    (tmp_path / "nan.obj").write_text("v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n")
    other = {"mesh": {"vertices": 9, "triangles": 9, "checksum": 1}, "handles": []}
    (tmp_path / "other.json").write_text(json.dumps(other))
    one = {"handles": [{"name": "one", "vertices": [0]}]}
    (tmp_path / "one.json").write_text(json.dumps(one))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("precious")
    return tmp_path


RUNS = {
    "arap": ("mesh.off", "--energy", "spokes-and-rims"),
    "cloth": ("--grid", 8, "--script", "sample"),
}


@pytest.mark.parametrize("app", RUNS)
def test_it_runs_without_a_display(folder, app, monkeypatch, capfd):
    run = geoopt(app, *RUNS[app], "--headless", "--frames", 3, "--out", "run", "--threads", 1, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "median of 3 frames" in run.stdout and "× faster" in run.stdout and "solver: " in run.stdout
    with (folder / "run" / "timings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(r["frame"]) for r in rows] == [0, 1, 2] and all(float(r["solve [s]"]) > 0 for r in rows)
    if "no pictures" in run.stdout:
        assert "EGL" in run.stdout
        return
    from PIL import Image

    frames = sorted((folder / "run" / "frames").glob("*.png"))
    first, last = (np.asarray(Image.open(frames[i]).convert("RGB"), float) for i in (0, -1))
    assert len(frames) == 3 and np.ptp(first) > 100 and (first != last).any()
    assert "run exists and is not empty" in refusal(
        monkeypatch, capfd, folder, app, *RUNS[app], "--headless", "--frames", 1, "--out", "run"
    )
    own = [folder / "run" / "frames" / "holiday.png", folder / "run" / "film.blend"]
    for path in own:
        path.write_text("not a recording's")
    again = geoopt(app, *RUNS[app], "--headless", "--frames", 1, "--out", "run", "--force", cwd=folder)
    assert again.returncode == 0 and len(list((folder / "run" / "frames").iterdir())) == 2
    assert all(path.read_text() == "not a recording's" for path in own)


def test_what_was_recorded_is_kept_when_a_run_ends_early(tmp_path):
    from rich.console import Console

    from geoopt.apps import cloth, launch
    from geoopt.apps.recording import Recording
    from geoopt.meshes import cloth as grid

    simulation, recording = cloth.build(grid(9)), Recording(tmp_path / "run")

    class Interrupted:
        def __init__(self, *_):
            pass

        def advance(self):
            if len(recording.frames) == 2:
                raise KeyboardInterrupt
            recording.add(simulation.advance())

        show = advance

    with pytest.raises(KeyboardInterrupt):
        for _ in range(3):
            launch.in_window(simulation, Interrupted, recording, Console(quiet=True))
    with (tmp_path / "run" / "timings.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2


def test_without_opengl_the_numbers_are_written(folder, monkeypatch):
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent.json")
    run = geoopt("arap", "mesh.off", "--headless", "--frames", 2, "--out", "run", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "no pictures: cannot render without a display" in " ".join(run.stdout.split())
    assert [p.name for p in (folder / "run").iterdir()] == ["timings.csv"]


def test_components_without_a_handle_are_told_of(folder, monkeypatch):
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent.json")
    run = geoopt("arap", "two.off", "--script", "one.json", "--headless", "--frames", 2, "--out", "run", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "no handle holds 1 of the components (42 vertices)" in " ".join(run.stdout.split())


ERRORS = [
    *[(app, "points.off", "no faces") for app in RUNS],
    *[(app, "book.off", "edge (0, 1) belongs to more than two triangles") for app in RUNS],
    *[(app, "nan.obj", "vertex 1 is not finite") for app in RUNS],
    *[(app, "mesh.off", "--script", "other.json", "made for another mesh") for app in RUNS],
    ("cloth", "tiny.off", "the cloth is 1.8e-05 m large"),
    ("cloth", "--grid", 4, "--script", "none.json", "none.json"),
    ("arap", "mesh.off", "--solver", "magic", "solver 'magic' is unknown"),
    ("arap", "mesh.off", "--energy", "rims", "energy 'rims' is unknown"),
    ("arap", "mesh.off", "--precision", "half", "precision 'half' is unknown"),
    ("cloth", "--grid", 4, "--device", "tpu", "device 'tpu' is unknown"),
    ("arap", "--out", "full", "full exists and is not empty"),
    ("cloth", "--out", "no/run", "there is no folder"),
]


@pytest.mark.parametrize("command", ERRORS, ids=lambda command: " ".join(map(str, command[:-1])))
def test_errors_are_one_line_and_write_nothing(folder, command, monkeypatch, capfd):
    *command, message = command
    before = sorted(folder.rglob("*"))
    error = refusal(monkeypatch, capfd, folder, *command, "--headless", "--frames", 1)
    assert message in error and len(error.strip().splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.skipif("cuda" in devices(), reason="there is a GPU")
@pytest.mark.parametrize("app", RUNS)
def test_without_a_gpu_the_device_is_refused(folder, app):
    run = geoopt(app, *RUNS[app], "--headless", "--device", "cuda", "--out", "run", cwd=folder)
    assert run.returncode == 2 and "device 'cuda' needs" in run.stderr and "cuda-on-host" in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1 and not (folder / "run").exists()


@pytest.mark.parametrize("app", RUNS)
def test_help_lists_the_options_of_both_apps(folder, app):
    text = geoopt(app, "--help", cwd=folder).stdout
    for option in ("--headless", "--frames", "--out", "--record", "--script", "--solver", "--threads", "--device"):
        assert option in text
    assert ("--energy" in text) == (app == "arap") and ("--grid" in text) == (app == "cloth") and "--run" not in text


def test_without_a_display_the_window_is_refused(folder, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    run = geoopt("cloth", "--grid", 4, cwd=folder)
    assert run.returncode == 2 and "no display" in run.stderr and "--headless" in run.stderr
    assert "done" not in run.stdout  # before anything is prepared


# -- what must not be lost ----------------------------------------------------------------------------------


def drawn(folder):
    """A recording with pictures, without OpenGL."""
    from geoopt.apps.recording import Recording
    from geoopt.apps.simulation import Frame

    recording = Recording(folder, force=True)
    for _ in range(2):
        recording.add(Frame({"step": 0.1}), lambda path: path.write_bytes(b"a picture"))
    return recording


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_an_earlier_recording_stays_until_the_new_one_is_there(tmp_path, monkeypatch):
    from geoopt.apps.recording import UNFINISHED, Recording

    def film(self):
        path = self.folder / UNFINISHED / "film.mp4"
        path.write_bytes(b"a film")
        return path

    monkeypatch.setattr(Recording, "_write_film", film)  # there may be no encoder
    folder = tmp_path / "run"
    first = drawn(folder).finish()
    assert {p.name for p in first} >= {"timings.csv", "frames"} and all(p.exists() for p in first)
    before = contents(folder)
    assert not any(UNFINISHED in name for name in before)

    def fails(self):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Recording, "_write_table", fails)
        again = drawn(folder)
        with pytest.raises(OSError, match="No space left"):
            again.finish()
    left = contents(folder)
    assert {name: left[name] for name in before} == before
    assert f"{UNFINISHED}/frames/0001.png" in left  # and what was recorded is not lost
    assert set(contents(folder)) - set(before) == {n for n in left if n.startswith(UNFINISHED)}
    drawn(folder).finish()
    assert contents(folder).keys() == before.keys()


def test_a_film_that_is_not_made_is_said_to_be_none(tmp_path, monkeypatch):
    from rich.console import Console

    from geoopt.apps import launch, recording

    monkeypatch.setattr(recording.importlib.util, "find_spec", lambda name: None)
    console = Console(record=True, width=200)
    launch._write(drawn(tmp_path / "run"), console)
    assert "no film: pip install geoopt-compiler[movies]" in console.export_text()


def test_a_picture_that_is_not_drawn_leaves_the_old_one(tmp_path, monkeypatch):
    from geoopt.apps import picture
    from geoopt.errors import PictureError

    def fails(*_):
        raise PictureError("no OpenGL")

    path = tmp_path / "picture.png"
    path.write_bytes(b"the old one")
    monkeypatch.setattr(picture, "_in_own_process", fails)
    with pytest.raises(PictureError):
        picture.render(np.zeros((3, 3)), np.array([[0, 1, 2]]), np.zeros(3), "values", path)
    assert contents(tmp_path) == {"picture.png": b"the old one"}


def test_to_be_terminated_ends_a_run_as_ctrl_c_does(tmp_path):
    command = [
        sys.executable,
        "-m",
        "geoopt",
        "cloth",
        "--grid",
        "8",
        "--headless",
        "--frames",
        "100000",
        "--out",
        "run",
    ]
    environment = os.environ | {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent.json"}
    run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not (tmp_path / "run").is_dir():
        time.sleep(0.1)
        assert run.poll() is None, run.stdout.read()
    time.sleep(0.5)
    run.terminate()
    assert b"Traceback" not in run.communicate(timeout=60)[0] and run.returncode == 130
    with (tmp_path / "run" / "timings.csv").open() as file:
        assert list(csv.DictReader(file))
