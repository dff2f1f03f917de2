"""The structure holds: files and folders import only what lies below them, files of one folder never in a circle."""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from geoopt.pipeline import STAGES

ROOT = Path(__file__).parents[1]

# top to bottom; a file or folder may import those of lower lines only (those of one line do not know each other)
LAYERS = (
    ("__main__",),
    ("__init__", "cli"),
    ("coverage", "distributed", "inputs", "jax", "torch"),
    ("chains", "differentiable", "jitted", "loading", "minimization", "views"),
    ("pipeline", "structure"),
    ("solvers",),
    ("batches", "derivatives", "program", "timing"),
    ("exporting", "preparation"),
    ("notebooks",),
    (*STAGES[:-1], "runtime", "evaluate", "display"),
    ("stages",),  # what they have in common
    # what devices run, and what traced code computes with
    ("codegen", "sparse"),
    ("symbolic",),
    ("saving",),
    # what the stages exchange
    ("groups", "grid"),
    ("cut", "kernels", "signature"),
    ("graph", "layout", "plan", "results"),
    # what all are written with
    ("arrays", "integers", "options", "output", "rounding", "stored_matrices", "template"),
    ("block_ops", "errors", "native", "numeric", "ops"),
    ("callers", "sources"),
    ("remedies",),
)
LEVEL = {name: i for i, names in enumerate(LAYERS) for name in names}
BESIDE = ("operators", "meshes", "apps")  # of `geoopt`, where only the command line knows them


@functools.cache
def files() -> dict[str, Path]:
    """The files of geoopt by their names in it; a folder's name is its `__init__`."""
    found = {}
    for path in sorted((ROOT / "geoopt").rglob("*.py")):
        parts = path.relative_to(ROOT / "geoopt").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imports(name: str) -> set[str]:
    """What a file of geoopt imports of geoopt, by the names of files."""
    path = files()[name]
    package = name.split(".") if path.name == "__init__.py" and name != "__init__" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(a.name.partition(".")[0] == "geoopt" for a in node.names), f"{name}: import relatively"
        if isinstance(node, ast.ImportFrom):
            assert node.level or (node.module or "").partition(".")[0] != "geoopt", f"{name}: import relatively"
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            if base and base[0] in BESIDE:
                assert name.partition(".")[0] in ("cli", "inputs"), f"{name} imports {base[0]}"
                continue
            assert not base or ".".join(base) in files(), f"{name} imports {'.'.join(base)}, which there is not"
            found |= {".".join([*base, a.name]) for a in node.names} | {".".join(base)}
    return found & files().keys() - {name}


def test_every_file_and_folder_has_its_place():
    assert {name.partition(".")[0] for name in files()} == set(LEVEL)


@pytest.mark.parametrize("name", sorted(files()))
def test_imports_point_downward(name):
    here = name.partition(".")[0]
    for target in imports(name):
        there = target.partition(".")[0]
        assert there == here or LEVEL[there] > LEVEL[here], f"{name} imports {target}"


def test_no_imports_go_in_circles():
    graphlib.TopologicalSorter({name: imports(name) for name in files()}).prepare()


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_stage_says_what_it_takes_gives_and_ensures(stage):
    text = ast.get_docstring(ast.parse(files()[stage].read_text())) or ""
    assert text.startswith(f"Stage `{stage}`: ")
    assert all(f"\n{word}: " in text for word in ("Takes", "Gives", "Ensures"))


def test_every_folder_is_installed():
    installed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in files().values()}
    beside = {*(f"geoopt.{name}" for name in BESIDE), "geoopt.apps.scripts"}  # the latter has data alone
    assert set(installed) == {folder.replace("/", ".") for folder in folders} | beside


def test_what_lies_beside_is_found_without_importing_it():
    code = "import geoopt; print(geoopt.meshes.torus, geoopt.operators.cotan_laplacian, hasattr(geoopt, 'nothing'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.startswith("<function torus") and found.endswith("False\n")


@pytest.mark.parametrize("path", sorted((ROOT / "operators").glob("*.py")), ids=lambda p: p.name)
def test_operators_know_numpy_sparse_matrices_and_errors_only(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level:
            of_geoopt = ("geoopt.errors", "geoopt.numeric", "geoopt.sparse")
            allowed = ("__future__", "dataclasses", "typing", "scipy.sparse", "scipy.sparse.csgraph", *of_geoopt)
            assert node.module in allowed, node.module
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1 and (ROOT / "operators" / f"{node.module}.py").exists(), node.module
        if isinstance(node, ast.Import):
            assert [a.name for a in node.names] in (["numpy"], ["geoopt"])


# of up to 400 lines; no others
LONG = {"integers.ids", "lift.tape", "native.translator", "sparse.matrix", "symbolic"}


def test_files_are_short_and_functions_too():
    others = [p for folder in ("operators", "meshes", "apps", "benchmarks") for p in (ROOT / folder).rglob("*.py")]
    most = {path: 400 if name in LONG else 300 for name, path in files().items()} | dict.fromkeys(others, 400)
    for path, lines in most.items():
        source = path.read_text()
        assert len(source.splitlines()) <= lines, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno - lines_of_examples(node) <= 40, f"{path.name}: {node.name}"


def lines_of_examples(node: ast.FunctionDef) -> int:
    """In the docstring, where they come last."""
    _, title, examples = (ast.get_docstring(node) or "").partition("\n\nExamples\n--------\n")
    return len((title + examples).splitlines()) - 1 if title else 0
