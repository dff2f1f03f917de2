"""Which way meshes stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import geoopt
from geoopt.apps.upright import AXES, turned, upward
from geoopt.meshes import bumpy, cloth

ROUND = bumpy(500)


def stump(axis: int):
    """A pyramid without its top, whose height is along an axis."""
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], float)
    V = np.concatenate([np.insert(corners, axis, 0, axis=1), np.insert(0.6 * corners, axis, 1, axis=1)])
    around = [[i, (i + 1) % 4, 4 + i, (i + 1) % 4, 4 + (i + 1) % 4, 4 + i] for i in range(4)]
    F = np.array([[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], *np.reshape(around, (8, 3))])
    return V, F if axis == 2 else F[:, ::-1]


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("suffix", [".stl", ".obj"])
def test_a_flat_underside_tells(axis, suffix):
    assert upward(*stump(axis), Path(f"part{suffix}")) == "xyz"[axis]


@pytest.mark.parametrize("is_turned_over", [False, True])
@pytest.mark.parametrize(("up", "order"), [("z", [0, 1, 2]), ("y", [0, 2, 1])])
def test_a_thin_mesh_lies_flat(up, order, is_turned_over):
    V, F = cloth(100)
    assert upward(V[:, order], F[:, ::-1] if is_turned_over else F) == up


@pytest.mark.parametrize(("name", "up"), [("a.STL", "z"), ("a.vtu", "z"), ("a.ply", "y"), ("a.gltf", "y"), (None, "y")])
def test_where_the_shape_does_not_tell_the_format_does(name, up):
    assert upward(*ROUND, Path(name) if name else None) == up
    upright = cloth(100)[0][:, [2, 0, 1]], cloth(100)[1]  # thin along the first axis
    assert upward(*upright, Path(name) if name else None) == up


def test_what_a_format_says_and_what_is_asked_for_come_first():
    assert upward(*stump(2), Path("part.glb")) == "y"
    assert upward(*stump(1), Path("part.obj"), "z") == "z"
    with pytest.raises(geoopt.ArgumentError, match="'x' cannot point upward; choose from auto, y, z"):
        upward(*ROUND, asked="x")


def test_vertices_without_triangles_do_not_matter():
    V, F = cloth(100)
    assert upward(np.concatenate([V, [[0, 0, 5.0]]]), F) == "z"


def test_axes_are_right_handed_and_turned_is_a_rotation():
    for up, (first, second, third) in AXES.items():
        assert np.linalg.det(np.eye(3)[[first, second, third]]) == pytest.approx(1)
        R = turned(np.eye(3), up)
        assert np.linalg.det(R) == pytest.approx(1)
        np.testing.assert_array_equal(turned(np.eye(3)[[third]], up), [[0, 1, 0]])
