"""What `import geoopt` loads: nothing before it is needed. Told by modules, not by time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import geoopt


def run(code: str) -> str:
    """What some code prints in a fresh process."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]).stdout


def loaded_by(code: str) -> set[str]:
    """The modules that some code loads, beyond those of NumPy and of `scipy.sparse`."""
    before = "import sys, numpy, scipy.sparse; old = {*sys.modules}"
    return set(run(f"{before}\n{code}\nprint(*{{*sys.modules}} - old)").split())


def test_nothing_is_loaded_before_it_is_asked_for():
    found = loaded_by("import geoopt")
    assert {name for name in found if name.startswith("geoopt")} == {"geoopt"}
    assert not {name.partition(".")[0] for name in found} & {
        "jax",
        "numba",
        "llvmlite",
        "rich",
        "scipy",
        "torch",
        "trimesh",
        "typer",
    }


@pytest.mark.parametrize("call", ["cotan_laplacian(V, F)", "geoopt.compile(cotan_laplacian, V, F)"])
def test_what_is_not_needed_is_not_loaded(call):
    imports = "import geoopt; from geoopt.meshes import bumpy; from geoopt.operators import cotan_laplacian"
    found = loaded_by(f"{imports}; V, F = bumpy(2_000); {call}")
    packages = {name.partition(".")[0] for name in found}
    assert not packages & {"cupy", "igl", "jax", "meshio", "rich", "torch", "trimesh", "typer"}
    if "compile" not in call:
        assert not packages & {"llvmlite", "numba"} and not {n for n in found if n.startswith("scipy.linalg")}


FIRST_PROGRAM = """
import geoopt
from numba.core.event import install_recorder
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian

with install_recorder("numba:compile") as by_numba:
    geoopt.compile(cotan_laplacian, *bumpy(10_000))

from tests.test_native import own

versions = [len(function.versions) for function in own().values()]
print(sum(map(bool, versions)), sum(versions), len(by_numba.buffer))
"""


def test_the_first_program_of_an_installation_compiles_few_loops():
    """What a newcomer waits for: each of Numba's takes a tenth of a second, each of ours a hundredth."""
    functions, versions, by_numba = map(int, run(FIRST_PROGRAM).split())
    assert functions <= 35 and versions <= 42 and not by_numba


def test_names_for_editors_are_those_that_can_be_asked_for():
    block = next(node for node in ast.parse(Path(geoopt.__file__).read_text()).body if isinstance(node, ast.If))
    told = {alias.asname: node.module for node in block.body for alias in node.names}
    assert told == {"sparse": None, **geoopt._HOMES}
    assert {*geoopt.__all__, "apps", "meshes", "operators"} <= {*dir(geoopt)}
    for name, home in geoopt._HOMES.items():
        assert getattr(geoopt, name) is getattr(sys.modules[f"geoopt.{home}"], name)


def test_help_is_that_of_the_function():
    assert "Specialise a function for the structure of its arguments." in run("import geoopt; help(geoopt.compile)")


def test_a_star_imports_all_public_names():
    names = run("from geoopt import *; print(*globals())").split()
    assert {*geoopt.__all__} <= {*names}
