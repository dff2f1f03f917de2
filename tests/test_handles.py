"""Handles move rigidly, scripts give back what was kept, and what is no script for a mesh is refused in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from geoopt.apps import handles
from geoopt.apps.handles import Handle
from geoopt.errors import ArgumentError
from geoopt.meshes import bumpy
from geoopt.meshes import cloth as grid

V, F = bumpy(100)


def script(tmp_path, *entries, **more):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"handles": list(entries), **more}))
    return path


def test_a_handle_moves_rigidly_about_its_middle(tmp_path):
    keys = [{"time": 0}, {"time": 2, "move": [0, 0.5, 0], "turn": [0, 0, 90]}]
    (handle,) = handles.read(script(tmp_path, {"name": "a", "vertices": [3, 1, 7], "keys": keys}), V, F)
    diagonal = np.linalg.norm(np.ptp(V, axis=0))
    for time, part in ((0, 0), (1, 0.5), (2, 1), (9, 1)):
        handle.follow(time)
        R = Rotation.from_euler("z", 90 * part, degrees=True).as_matrix()
        want = (handle.start - handle.middle) @ R.T + handle.middle + [0, 0.5 * diagonal * part, 0]
        np.testing.assert_allclose(handle.targets, want, atol=1e-12)
    np.testing.assert_array_equal(handle.start, V[[3, 1, 7]])


def test_a_box_is_relative_to_the_mesh(tmp_path):
    (handle,) = handles.read(script(tmp_path, {"name": "top", "inside": [[0, 0, 0.9], [1, 1, 1]]}), 3 * V + 1, F)
    low, high = V[:, 2].min(), V[:, 2].max()
    np.testing.assert_array_equal(handle.vertices, np.flatnonzero(V[:, 2] >= low + 0.9 * (high - low)))


def test_a_box_of_a_flat_mesh_is_measured_along_its_longest_side(tmp_path):
    V, F = grid(100, width=3)
    (handle,) = handles.read(script(tmp_path, {"name": "top", "inside": [[0, 0, 0.9], [1, 1, 1]]}), V, F)
    longest = np.argmax(np.ptp(V, axis=0))
    along = V[:, longest] - V[:, longest].min()
    np.testing.assert_array_equal(handle.vertices, np.flatnonzero(along >= 0.9 * along.max()))
    bottom, top = handles.read(handles.SAMPLES / "arap.json", V, F)
    assert not np.isin(bottom.vertices, top.vertices).any()


def test_what_is_kept_comes_back(tmp_path):
    kept = [Handle("a", np.array([5, 2]), V[[5, 2]]), Handle("b", np.arange(10, 20), 1.1 * V[10:20])]
    kept[1].frame[:3, :3] = Rotation.from_rotvec([0.1, 2, -0.3]).as_matrix()
    kept[1].frame[:3, 3] += [1, 2, 3]
    handles.write(tmp_path / "kept.json", kept, V, F)
    for old, new in zip(kept, handles.read(tmp_path / "kept.json", V, F), strict=True):
        assert old.name == new.name and (old.vertices == new.vertices).all()
        np.testing.assert_allclose(new.frame, old.frame, atol=1e-12)
        np.testing.assert_allclose(new.targets, old.targets, atol=1e-12)
    for other in ((*bumpy(200),), (V, F[::-1])):
        with pytest.raises(ArgumentError, match="made for another mesh: 98 vertices"):
            handles.read(tmp_path / "kept.json", *other)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"vertices": [1]}, "KeyError: 'name'"),
        ({"name": "a"}, "KeyError: 'vertices'"),
        ({"name": "a", "vertices": []}, "holds no vertex"),
        ({"name": "a", "inside": [[2, 2, 2], [3, 3, 3]]}, "holds no vertex"),
        ({"name": "a", "vertices": [98]}, "outside 0..97; was it made for another mesh"),
        ({"name": "a", "vertices": [0.5]}, "vertices must be integers, not float64"),
        ({"name": "a", "vertices": [1], "kyes": []}, "handle 'a' has 'kyes', which means nothing; it may have name"),
        ({"name": "a", "vertices": [1], "keys": [{"time": 0, "mvoe": [0, 0, 1]}]}, "a key of handle 'a' has 'mvoe'"),
        ({"name": "a", "vertices": [1, 1]}, "vertex 1 is in two handles"),
        ({"name": "a", "vertices": [1], "start": [[0, 0]]}, "start needs three numbers"),
        ({"name": "a", "vertices": [1], "keys": []}, "keys need increasing times"),
        ({"name": "a", "vertices": [1], "keys": [{"time": 1}, {"time": 1}]}, "keys need increasing times"),
        ({"name": "a", "vertices": [1], "keys": [{"time": 0, "move": [1, 2]}]}, "moves and turns of three numbers"),
        ({"name": "a", "vertices": [1], "keys": [{"time": float("nan")}]}, "keys need increasing times"),
    ],
)
def test_what_is_no_script_is_refused(tmp_path, entry, message):
    path = script(tmp_path, entry)
    with pytest.raises(ArgumentError, match=message) as caught:
        handles.read(path, V, F)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.json"
    for content in ("not JSON", "[]", "{}", '{"handles": 3}'):
        path.write_text(content)
        with pytest.raises(ArgumentError, match="is not a script of handles"):
            handles.read(path, V, F)


@pytest.mark.parametrize(("name", "mesh"), [("arap", bumpy(1000)), ("cloth", grid(900))])
def test_the_samples_fit(name, mesh):
    found = handles.read(handles.SAMPLES / f"{name}.json", *mesh)
    assert len(found) == 2 and any(len(h.track.times) > 1 for h in found)
