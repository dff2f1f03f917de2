"""The compiler finds the blocks of the operators by itself: the tag changes neither kernels nor operations."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import geoopt
from geoopt import operators
from geoopt.trace import trace

from .cases_operators import case

# what the paper's authors tag: the function inside an operator whose results, or whose argument by number, are a block
TAGS = {
    "arap_rhs": ("arap", "polar_quaternion", None),
    "arap_energy": ("arap", "polar_rotation", None),
    "cloth_system": ("cloth_forces", "_assembled", 0),
    "cloth_forces": ("cloth_forces", "_deformation", None),
    "dual_laplacian": ("dual_laplacian", "tetrahedron_circumcentre", None),
    "cotan_laplacian": ("cotan_laplacian", "matrix_of_edges", 2),
    "vertex_normals": ("vertex_normals", "double_area_normals", None),
}


def counts(function, arguments):
    """Per kernel: members, values, operations and bytes."""
    names = ("level", "members", "values", "terms", "operations", "read_bytes", "written_bytes", "column_bytes")
    return [[kernel[n] for n in names] for kernel in geoopt.compile(function, *arguments).report()["kernels"]]


def tag(monkeypatch, file, inside, argument):
    """Tag what a function of an operator's file returns, or one of its arguments."""
    module = importlib.import_module(f"geoopt.operators.{file}")
    original = getattr(module, inside)

    def with_tag(*args):
        if argument is None:
            return geoopt.block(original(*args))
        return original(*args[:argument], geoopt.block(args[argument]), *args[argument + 1 :])

    monkeypatch.setattr(module, inside, with_tag)


@pytest.mark.parametrize("name", TAGS)
def test_the_tag_changes_nothing(name, monkeypatch):
    function, arguments = case(name)
    untagged = counts(function, arguments)
    tag(monkeypatch, *TAGS[name])
    assert counts(function, arguments) == untagged
    assert trace(function, arguments)[0].graph.blocks  # the tag arrived


def test_no_operator_uses_the_tag():
    for path in Path(operators.__path__[0]).glob("*.py"):
        assert "block(" not in path.read_text(), path.name
