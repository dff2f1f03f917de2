"""Functions of other libraries compile as they are installed; of those that are not installed nothing is run."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import geoopt
from benchmarks import existing_code
from benchmarks.__main__ import app
from benchmarks.records import Setting
from benchmarks.run import difference, parts
from benchmarks.works import chosen_works
from geoopt.errors import ArgumentError
from geoopt.meshes import bumpy

MESH = bumpy(120)


@pytest.mark.parametrize("name", existing_code.WORKS)
def test_functions_of_libraries_compile_unchanged(name):
    missing = existing_code.left_out()
    if name in missing:
        pytest.skip(missing[name])
    work = existing_code.works(MESH, float)[name]()
    program = geoopt.compile(work.function, *work.arguments)
    moves = np.random.default_rng(7)
    others = tuple(x * moves.uniform(0.97, 1.03, x.shape) for x in work.inputs)
    for inputs in (work.inputs, others):
        want = work.function(*(x.copy() for x in inputs))
        assert difference(parts(program(*inputs)), parts(want)) < 1e-10


def test_works_of_libraries_that_are_not_installed_are_left_out(monkeypatch):
    monkeypatch.setattr(existing_code, "find_spec", lambda package: None if package == "pyFM" else package)
    [name] = existing_code.left_out()
    assert existing_code.left_out() == {"orientation operator, pyFM": "pip install pyfmaps"}
    assert existing_code.works(MESH, float).keys() == existing_code.WORKS.keys() - {name}
    with pytest.raises(ArgumentError, match="is left out: pip install pyfmaps"):
        chosen_works(existing_code.BENCHMARK, MESH, Setting(works=(name,)))


def test_what_is_left_out_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(existing_code, "find_spec", lambda package: None)
    words = ["existing_code", "--vertices", "60", "--out", str(tmp_path / "lines.jsonl")]
    told = CliRunner().invoke(app, words).output
    assert all(f"{name} is left out: pip install" in told for name in existing_code.WORKS)
