"""The structure holds: files and folders import only what lies below them."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# top to bottom; a file or folder may import those of lower lines only (those of one line do not know each other)
LAYERS = (
    ("__main__",),
    ("__init__", "cli"),
    ("minimization", "view"),
    ("pipeline",),
    ("derivatives", "program"),
    # the stages, in order
    (
        "trace",
        "lift",
        "decompose",
        "group",
        "harvest",
        "simplify",
        "share",
        "place",
        "schedule",
        "allocate",
        "runs",
        "rows",
        "compress",
        "spread",
        "runtime",
        "evaluate",
    ),
    ("codegen", "sparse"),
    # what they exchange
    ("groups", "symbolic"),
    ("structure", "grid"),
    ("cut", "kernel"),
    ("graph", "layout", "plan"),
    ("integers", "options", "solvers", "template"),
    ("block_ops", "display", "errors", "numeric", "ops", "signature", "timing"),
)
LEVEL = {name: i for i, names in enumerate(LAYERS) for name in names}


def files() -> dict[str, Path]:
    """The files of geoopt by their names in it; a folder's name is its `__init__`."""
    found = {}
    for path in sorted((ROOT / "geoopt").rglob("*.py")):
        parts = path.relative_to(ROOT / "geoopt").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imports(name: str, path: Path) -> set[str]:
    package = name.split(".") if path.name == "__init__.py" and name != "__init__" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            found |= {".".join([*base, a.name]) for a in node.names} | {".".join(base)}
    return found & files().keys() - {name}


def test_every_file_and_folder_has_its_place():
    assert {name.partition(".")[0] for name in files()} == set(LEVEL)


@pytest.mark.parametrize("name", sorted(files()))
def test_imports_point_downward(name):
    here = name.partition(".")[0]
    for target in imports(name, files()[name]):
        there = target.partition(".")[0]
        assert there == here or LEVEL[there] > LEVEL[here], f"{name} imports {target}"


def test_no_two_files_import_each_other():
    graphlib.TopologicalSorter({name: imports(name, path) for name, path in files().items()}).prepare()


@pytest.mark.parametrize("path", sorted((ROOT / "operators").glob("*.py")), ids=lambda p: p.name)
def test_operators_know_numpy_sparse_matrices_and_errors_only(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level:
            allowed = ("__future__", "dataclasses", "typing", "geoopt.errors", "geoopt.numeric", "geoopt.sparse")
            assert node.module in allowed, node.module
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1 and (ROOT / "operators" / f"{node.module}.py").exists(), node.module
        if isinstance(node, ast.Import):
            assert [a.name for a in node.names] == ["numpy"]


def test_files_are_short_and_functions_too():
    others = [p for folder in ("operators", "meshes", "apps", "benchmarks") for p in (ROOT / folder).rglob("*.py")]
    for path in [*files().values(), *others]:
        source = path.read_text()
        assert len(source.splitlines()) <= 400, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno <= 40, f"{path.name}: {node.name}"
