"""Many meshes and parameters over the workers of joblib, Dask and Ray: the same bits, nothing prepared twice, and
nothing lost where a worker is killed."""

from __future__ import annotations

import os
import re
import runpy
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import geoopt
from geoopt.meshes import icosphere
from geoopt.native import cache

from .conftest import is_thorough

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
NEEDED = {"joblib": "joblib", "dask": "distributed", "ray": "ray"}
ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed"))
    for name, package in NEEDED.items()
]
# all of them with the thorough profile; else one for each test
JOBLIB, DASK = (ENGINES, ENGINES) if is_thorough() else (ENGINES[:1], ENGINES[1:2])
WORKERS = {"joblib": "popen_loky", "dask": "spawn_main", "ray": "ray::compute"}  # in their command lines
only_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lists processes in /proc")
SMALL = "--sizes 400 --count 50 --chunk 2".split()  # five triangulations, 25 chunks


def command(script: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, *map(str, (EXAMPLES / script, *arguments))]


def printed(script: str, *arguments: str | Path) -> str:
    run = subprocess.run(command(script, *arguments), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture
def example(monkeypatch):
    """The names of an example, as its workers have them."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return lambda script: runpy.run_path(str(EXAMPLES / script))


# -- parameters ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept():
    """What the program itself computes, in this process."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        names = runpy.run_path(str(EXAMPLES / "parameter_sweep.py"))
    finally:
        sys.path.remove(str(EXAMPLES))
    program, V = names["prepared"](60)
    rows = []
    for stretch in names["STRETCH"]:
        for bending in names["BENDING"]:
            for wind in names["WIND"]:
                x, v = V, 0 * V
                for _ in range(5):
                    x, v = program(x, v, stretch, bending, np.array([0.0, wind, 0.0]))
                rows.append([stretch, bending, wind, -x[:, 2].min(), np.abs(x[:, 1] - V[:, 1]).max()])
    return np.array(rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_has_the_bits_of_the_program(engine, swept, tmp_path):
    text = printed(
        "parameter_sweep.py", *f"--on {engine} --vertices 60 --steps 5 --out".split(), tmp_path / "sweep.npy"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "sweep.npy"), swept)
    (workers,) = re.findall(r"by (\d) processes", text)
    assert 1 <= int(workers) <= 2 and f"unpickled {workers} times" in text


def test_an_engine_that_is_not_installed_is_said(example, monkeypatch):
    engine = example("engines.py")["engine"]
    monkeypatch.setitem(engine.__globals__, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"--on dask: dask and distributed not found; pip install dask distributed"):
        engine("dask", 2)


# -- meshes -------------------------------------------------------------------------------------------------


def test_features_of_a_sphere(example):
    names = example("thousand_meshes.py")
    V, F = icosphere(2000)
    got = names["features"](*geoopt.compile(names["quantities"], V, F)(3 * V))  # without a unit
    harmonics = np.repeat([1.0, 2.0, 3.0], [3, 5, 7])[: names["EIGENVALUES"]]
    np.testing.assert_allclose(got[: len(harmonics)], 4 * np.pi * harmonics * (harmonics + 1), rtol=0.02)
    share, edges = got[len(harmonics) :], names["EDGES"]
    assert np.isclose(share.sum(), 1)
    assert share[(edges[:-1] > 2.9) & (edges[1:] < 4.1)].sum() > 0.99  # 1 times the root of 4 π


def test_chunks_are_of_all_meshes_once(example):
    names = example("thousand_meshes.py")
    for count in (1, 7, 1000):
        chunks = names["chunks_of"](count, names["SIZES"], 25)
        shapes = [(c.kind, c.size, i) for c in chunks for i in range(c.first, c.last)]
        assert len(shapes) == len(set(shapes)) == count
        assert len({c.file for c in chunks}) == len(chunks)


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Of a run in which nothing was killed, by one worker, with a cache of its own."""
    folder = tmp_path_factory.mktemp("features")
    before = os.environ["GEOOPT_CACHE_DIR"]
    os.environ["GEOOPT_CACHE_DIR"] = str(folder / "cache")
    try:
        text = printed("thousand_meshes.py", folder, "--workers", "1", *SMALL)
        code = cache.contents(cache.programs()).files
    finally:
        os.environ["GEOOPT_CACHE_DIR"] = before
    assert "5 programs prepared by 1 processes, 0 were there" in text and "0 of 25 chunks are there" in text
    assert 0 < code < 8  # surfaces share the code of kernels that differ in their tables alone
    return np.load(folder / "features.npy")


@pytest.mark.parametrize("engine", JOBLIB)
def test_a_data_set_is_prepared_once_and_computed_once(engine, features, tmp_path):
    text = printed("thousand_meshes.py", tmp_path, "--on", engine, *SMALL)
    prepared, there = re.findall(r"(\d) programs prepared by [12] processes, (\d) were there", text)[0]
    assert (prepared, there) == ("5", "0") and len([*tmp_path.glob("*.geoopt")]) == 5
    np.testing.assert_array_equal(np.load(tmp_path / "features.npy"), features)
    (tmp_path / "bumpy1-400-00008-00010.npy").unlink()
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*-*")}
    text = printed("thousand_meshes.py", tmp_path, "--on", engine, *SMALL)
    assert "24 of 25 chunks are there" in text and "0 programs prepared by 0 processes, 1 were there" in text
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    np.testing.assert_array_equal(np.load(tmp_path / "features.npy"), features)


def descendants(process: int) -> dict[int, str]:
    """The processes that one has begun, with those that they have begun, and their command lines."""
    parents, lines = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            lines[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
    found, new = set(), {process}
    while new := {child for child, parent in parents.items() if parent in new} - found:
        found |= new
    return {child: lines.get(child, "") for child in found}


def killed_amid(folder: Path, engine: str, whole_run: bool) -> tuple[int, str]:
    """Run until some chunks are there, kill a worker or all processes; gives the status of the run, and its output."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    with subprocess.Popen(command("thousand_meshes.py", folder, "--on", engine, *SMALL), **pipes) as run:
        until = time.monotonic() + 120
        while len([*folder.glob("*-*.npy")]) < 3 and run.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        if whole_run:
            os.killpg(run.pid, signal.SIGKILL)
        else:
            workers = [child for child, line in descendants(run.pid).items() if WORKERS[engine] in line]
            os.kill(min(workers), signal.SIGKILL)
        text = run.communicate(timeout=120)[0]
    return run.returncode, text


@only_linux
@pytest.mark.parametrize("engine", DASK)
def test_a_killed_worker_loses_nothing(engine, features, tmp_path):
    status, text = killed_amid(tmp_path, engine, whole_run=False)
    there = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*-*")}
    if engine == "joblib":  # it ends, and goes on when it is begun again
        assert status == 1 and "a worker was killed: the same command goes on" in text
        assert 3 <= len([*tmp_path.glob("*-*.npy")]) < 25 and not (tmp_path / "features.npy").exists()
        assert re.search(r"\n0 programs prepared by 0 processes", printed("thousand_meshes.py", tmp_path, *SMALL))
    else:
        assert status == 0, text
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in there.items())
    np.testing.assert_array_equal(np.load(tmp_path / "features.npy"), features)
    assert not [*tmp_path.glob("*.part")]


@only_linux
def test_a_killed_run_goes_on(features, tmp_path):
    assert killed_amid(tmp_path, "joblib", whole_run=True)[0] == -signal.SIGKILL
    there = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*-*")}
    assert 3 <= len([*tmp_path.glob("*-*.npy")]) < 25
    printed("thousand_meshes.py", tmp_path, *SMALL)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in there.items())
    np.testing.assert_array_equal(np.load(tmp_path / "features.npy"), features)


# -- functions that are prepared where they are called -----------------------------------------------------------


IN_A_SCRIPT = """
import os, sys
from engines import engine
import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import face_areas

plain = geoopt.jit(face_areas)
double = geoopt.jit(lambda V, F: 2 * face_areas(V, F))

@geoopt.jit
def triple(V, F):
    return 3 * face_areas(V, F)

WAYS = plain, double, triple

def task(size):
    V, F = bumpy(size)
    for factor, areas in enumerate(WAYS, 1):
        assert abs(areas(V, F) - factor * face_areas(V, F)).max() < 1e-12
    return os.getpid(), *(count for areas in WAYS for count in areas.cache_info()[:2])

if __name__ == "__main__":
    with engine(sys.argv[1], 2) as each:
        for counts in each(task, [50, 100] * 4):
            print(*counts)
"""


@pytest.mark.parametrize("engine", JOBLIB)
def test_a_jitted_function_of_a_script_prepares_nothing_twice_in_a_worker(engine, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(IN_A_SCRIPT)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, script, engine], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    calls = np.array([line.split() for line in run.stdout.splitlines()], int)
    assert len(calls) == 8
    for process in set(calls[:, 0]):
        _, *counts = calls[calls[:, 0] == process].T
        for hits, misses in zip(counts[::2], counts[1::2], strict=True):
            assert hits.max() + misses.max() == len(hits) and misses.max() <= 2
