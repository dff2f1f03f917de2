"""The structure holds: a file imports only what lies below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# top to bottom; a file may import files of lower lines only (same-line files do not know each other)
LAYERS = (
    ("__main__",),
    ("cli",),
    ("__init__",),
    ("view", "minimization"),
    ("pipeline", "derivatives"),
    ("program",),
    ("display", "evaluate", "runtime.cpu", "runtime.cuda", "runtime.cuda_on_host"),
    ("runtime.host", "runtime.nvrtc"),
    ("runtime.machine",),
    ("runtime.cache", "codegen"),
    ("codegen.llvm", "codegen.cuda"),
    ("codegen.llvm_math", "codegen.llvm_sums", "codegen.llvm_scatter", "codegen.llvm_fission"),
    ("codegen.llvm_rows", "codegen.llvm_cursors"),
    ("codegen.llvm_prefetch", "codegen.llvm_runs"),
    ("codegen.llvm_projection", "codegen.cuda_projection", "codegen.llvm_stores"),
    ("codegen.llvm_code",),
    ("codegen.llvm_memory", "codegen.cuda_numbers"),
    ("rows", "runs", "compress", "allocate", "spread"),
    ("grid", "parts"),
    ("schedule", "curvature"),
    ("writers", "place"),
    ("strips",),
    ("tables", "order", "elements", "inner"),
    ("plan", "simplify", "share", "harvest", "lift"),
    ("simplify.constants", "simplify.roots", "simplify.loops", "simplify.factors"),
    ("simplify.fractions", "simplify.sums", "simplify.merge", "simplify.rules"),
    ("simplify.products", "simplify.patterns"),
    ("simplify.chains",),
    ("simplify.facts",),
    ("simplify.values", "simplify.signs"),
    ("kernel", "lift_runs", "group"),
    ("template_derivatives",),
    ("template", "lift_tape", "reverse"),
    ("structure",),
    ("decompose", "trace"),
    ("combine", "local_sums", "stream", "scatter", "cursors"),
    ("references", "rebuild", "chain", "terms", "mirrors", "expansion"),
    ("results",),
    ("sparse", "array_linalg", "array_filling"),
    ("sparse_matrix",),
    ("array_products",),
    ("array_sums",),
    ("array_elementwise",),
    ("array_moving",),
    ("array_tables",),
    ("sums",),
    ("arithmetic", "scalar"),
    ("symbolic", "repetition"),
    ("vertex_blocks",),
    ("coordinates", "layout"),
    ("graph", "numeric", "options", "patterns"),
    ("tape", "solvers", "segments"),
    ("ids",),
    ("hashing",),
    ("ops", "block_ops", "errors", "owners", "timing"),
    ("kinds",),
    ("gathers", "indexing"),
    ("cores", "instructions"),
)
LEVEL = {name: i for i, names in enumerate(LAYERS) for name in names}


def files() -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / "geoopt").rglob("*.py")):
        parts = path.relative_to(ROOT / "geoopt").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path
    found.pop("runtime")  # only a docstring
    return found


def imports(name: str, path: Path) -> set[str]:
    package = name.split(".") if path.name == "__init__.py" and name != "__init__" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for candidate in (
                *([".".join(base)] if node.module else []),
                *(".".join([*base, a.name]) for a in node.names),
            ):
                if candidate in LEVEL:
                    found.add(candidate)
    return found


def test_every_file_has_its_place():
    assert set(files()) == set(LEVEL)


@pytest.mark.parametrize("name", sorted(LEVEL))
def test_imports_point_downward(name):
    for target in imports(name, files()[name]):
        assert LEVEL[target] > LEVEL[name], f"{name} imports {target}"


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
