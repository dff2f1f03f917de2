"""Peers in C++ build themselves, once per source, compiler and processor; what is missing they say by ImportError."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from ..method import processor

FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC", "-w")
# -ffast-math without what it does to the whole process when the library is loaded (denormals become zero)
FAST = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math")
EIGEN = ("/usr/include/eigen3", "/usr/local/include/eigen3", "/opt/homebrew/include/eigen3")


def library(source: Path, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """The shared library of a C++ file."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise ImportError("there is no C++ compiler")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    key = repr((source.read_text(), version, processor(), FLAGS, FAST, tuple(flags)))
    folder = Path(platformdirs.user_cache_dir("geoopt")) / "peers"
    target = folder / f"{source.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built = Path(scratch) / "built.so"
            command = [compiler, *FLAGS, *FAST, *flags, str(source), "-o", str(built)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise ImportError(f"{source.name} does not compile: {done.stderr.strip().splitlines()[0]}")
            os.replace(built, target)
    return ctypes.CDLL(str(target))


def eigen() -> str:
    """The folder of Eigen's headers."""
    for folder in (os.environ.get("EIGEN", ""), *EIGEN):
        if folder and (Path(folder) / "Eigen" / "Sparse").exists():
            return folder
    raise ImportError("Eigen is not there")
