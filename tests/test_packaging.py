"""The source distribution and the wheel build without a warning, and the wheel works without the source beside it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"geoopt": "geoopt", "operators": "geoopt/operators", "apps": "geoopt/apps", "meshes": "geoopt/meshes"}
USE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, geoopt
from geoopt.apps.handles import SAMPLES
from geoopt.meshes import bumpy
from geoopt.operators import face_areas
V, F = bumpy(50)
assert np.allclose(geoopt.compile(face_areas, V, F)(2 * V), face_areas(2 * V, F))
assert list(SAMPLES.glob("*.json"))
used = {m.__file__ for name, m in sys.modules.items() if name.partition(".")[0] == "geoopt"}
assert all(file.startswith(sys.argv[1]) for file in used), used
"""


def setuptools_version() -> int:
    try:
        return int(version("setuptools").partition(".")[0])
    except PackageNotFoundError:
        return 0


def run(*command, folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(what: str, source: Path, target: Path) -> Path:
    """What `python -m build` makes of a folder, without a network. what : "sdist" or "wheel" """
    code = f"from setuptools.build_meta import build_{what} as build; print('MADE', build({str(target)!r}))"
    said = run(sys.executable, "-c", code, folder=source)
    warnings = [line for line in said.splitlines() if re.search("warn|deprecat", line, re.IGNORECASE)]
    assert not warnings, said
    return target / re.search(r"^MADE (.*)$", said, re.MULTILINE)[1]


@pytest.mark.skipif(setuptools_version() < 77, reason="needs setuptools 77, as of the extra 'dev'")
def test_the_wheel_works_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # setuptools would warn that it is set
    source = tmp_path / "source"
    source.mkdir()
    for name in ("README.md", "LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / name, source)
    for name in FOLDERS:
        links = [p.name for p in (ROOT / name).iterdir() if p.is_symlink()]
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", *links))
    with tarfile.open(build("sdist", source, tmp_path)) as archive:
        archive.extractall(tmp_path / "sdist", filter="data")
    (unpacked,) = (tmp_path / "sdist").iterdir()
    wheel = build("wheel", unpacked, tmp_path)

    expected = {
        (Path(FOLDERS[name]) / p.relative_to(source / name)).as_posix()
        for name in FOLDERS
        for p in (source / name).rglob("*")
        if p.suffix in (".py", ".json")
    }
    with zipfile.ZipFile(wheel) as archive:
        assert expected == {name for name in archive.namelist() if ".dist-info/" not in name}

    target, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    install = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, wheel)
    run(sys.executable, *install, folder=empty)
    monkeypatch.setenv("GEOOPT_CACHE_DIR", str(tmp_path / "cache"))
    run(sys.executable, "-I", "-c", USE, target, folder=empty)
