"""geoopt at another commit and as it lies here, each in a folder of its own as if it were installed.

Folders are named after what they hold and kept under ``out/compare``, with the machine code of their own loops; that of
Numba, which older versions use, lies beside the sources. The definitions of works are always the present ones, in both.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from geoopt.errors import ArgumentError

from .method import ROOT

FOLDER = ROOT / "out" / "compare"
NO_CODE = shutil.ignore_patterns("__pycache__", "results", "plots", "*.md")


@dataclass(frozen=True)
class Version:
    """name : what it is called;  site : the folder that Python finds its packages in;  works : that of the works"""

    name: str
    site: Path
    works: Path


def of_commit(commit: str) -> Version:
    """That of a commit, by any name that git knows."""
    found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if found.returncode:
        raise ArgumentError(f"commit {commit!r} is unknown in {ROOT}; fetch it, or choose one that git log shows")
    full = found.stdout.decode().strip()
    archive = _git("archive", "--format=tar", full)
    if archive.returncode:
        raise ArgumentError(f"commit {commit!r} cannot be read: {archive.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory() as tree, tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")
        return _version(full[:10], Path(tree))


def of_this_tree() -> Version:
    """What lies here, committed or not."""
    return _version("this tree", ROOT)


def _git(*words: str) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    except OSError as error:
        raise ArgumentError(f"comparing commits needs git: {error}") from error


def _version(name: str, tree: Path) -> Version:
    """The packages of a tree, where pyproject.toml says that they go."""
    setuptools = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = {package.replace(".", "/"): tree / folder for package, folder in setuptools["package-dir"].items()}
    return Version(name, _installed(packages), _installed({"benchmarks": ROOT / "benchmarks"}))


def _installed(folders: dict[str, Path]) -> Path:
    """A folder that holds others, by their places in it."""
    site = FOLDER / _digest(folders)
    if not site.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as made:
            for place, folder in folders.items():
                shutil.copytree(folder, Path(made) / "site" / place, ignore=NO_CODE, dirs_exist_ok=True)
            (Path(made) / "site").rename(site)
    return site


def _digest(folders: dict[str, Path]) -> str:
    """Equal where the sources are: caches then hold the same."""
    digest = hashlib.blake2b(digest_size=8)
    for place, folder in folders.items():
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".json", ".cpp")):
            digest.update(f"{place}/{path.relative_to(folder).as_posix()}".encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
