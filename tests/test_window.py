"""The windows, driven by mouse and key events in polyscope's backend without a display."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from geoopt.apps import arap, cloth, handles
from geoopt.apps.arap_window import ArapWindow
from geoopt.apps.cloth_window import ClothWindow
from geoopt.apps.picture import require_opengl
from geoopt.apps.simulation import FRAME
from geoopt.errors import PictureError
from geoopt.meshes import bumpy, load
from geoopt.meshes import cloth as grid


@pytest.fixture(scope="module")
def opengl():
    try:
        require_opengl()
    except PictureError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def opened(opengl):
    """Opens windows that are paused, and closes them."""
    windows = []

    def open_(make, simulation):
        import polyscope as ps

        windows.append(make(simulation, True))
        windows[-1].is_paused = True
        ps.set_max_fps(-1)
        ps.set_SSAA_factor(1)  # by software, every pixel counts
        ps.set_frame_tick_limit_fps_mode("ignore_limits")
        tick(3)
        return windows[-1]

    yield open_
    for window in windows:
        mouse(None)
        window.close()


def tick(times=1):
    import polyscope as ps

    for _ in range(times):
        ps.frame_tick()


def mouse(place=None, pressed=None):
    """Move the mouse, or press and release its left button; the window has a turn after each event."""
    import polyscope.imgui as psim

    io = psim.GetIO()
    if place is not None:
        io.AddMousePosEvent(*map(float, place))
    if pressed is not None:
        io.AddMouseButtonEvent(0, pressed)
    tick(2)


def press(place):
    mouse(place)
    mouse(pressed=True)
    mouse(pressed=False)


def drag(start, end):
    mouse(start)
    mouse(pressed=True)
    for part in (0.3, 0.6, 1.0):
        mouse(np.add(start, part * np.subtract(end, start)))
    mouse(pressed=False)


def key(*names):
    """Press and release keys, one after the other."""
    import polyscope.imgui as psim

    for name in names:
        for is_down in (True, False):
            psim.GetIO().AddKeyEvent(getattr(psim, f"ImGuiKey_{name}"), is_down)
            tick(2)


def type_(place, text):
    """Replace what is in a field."""
    import polyscope.imgui as psim

    press(place)
    key("End", *["Backspace"] * 40)
    psim.GetIO().AddInputCharactersUTF8(text)
    tick(2)
    key("Enter")


def place_of(point):
    """Where a point in space is in the window [pixels]."""
    import polyscope as ps

    camera = ps.get_view_camera_parameters()
    x, y, z = (np.array(camera.get_view_mat()) @ [*point, 1])[:3]
    width, height = ps.get_window_size()
    scale = height / 2 / np.tan(np.deg2rad(camera.get_fov_vertical_deg()) / 2)
    return width / 2 + scale * x / -z, height / 2 - scale * y / -z


def nearest_to_camera(V):
    import polyscope as ps

    return int(np.argmin(np.linalg.norm(V - ps.get_view_camera_parameters().get_position(), axis=1)))


def pixels(window, path):
    from PIL import Image

    window.write_picture(path)
    return np.asarray(Image.open(path).convert("RGB"), float)


def small_arap():
    return arap.build(bumpy(300), arap.ArapOptions(iterations=2))


def test_a_click_makes_a_handle_and_another_chooses_it(opened):
    simulation = small_arap()
    window = opened(ArapWindow, simulation)
    tip = nearest_to_camera(simulation.V)
    press(place_of(simulation.V[tip]))
    (handle,) = simulation.handles
    assert window.handle is handle and window.message == "" and np.linalg.norm(handle.middle - simulation.V[tip]) < 0.3
    window.choose(None)
    press(place_of(simulation.positions[handle.vertices[0]]))
    assert simulation.handles == [handle] and window.handle is handle
    press(window.places["remove"])
    assert simulation.handles == [] and window.handle is None


def test_clicks_beside_the_surface_and_drags_make_none(opened):
    simulation = small_arap()
    window = opened(ArapWindow, simulation)
    press((20, 700))
    middle = place_of(simulation.V[nearest_to_camera(simulation.V)])
    drag(middle, np.add(middle, (60, 0)))
    window.use_mouse("look")
    press(place_of(simulation.V[nearest_to_camera(simulation.V)]))
    assert simulation.handles == []


def with_a_chosen_handle(opened):
    """The sample's handles, the second one chosen: the simulation, its window, the handle."""
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    window.choose(simulation.handles[1])
    tick(3)
    return simulation, window, simulation.handles[1]


def test_the_gizmo_drags_the_surface(opened):
    simulation, window, top = with_a_chosen_handle(opened)
    import polyscope as ps

    middle, before = np.array(place_of(top.middle)), top.frame.copy()
    length = 0.05 * ps.get_length_scale()
    along = np.subtract(place_of(top.middle + np.array([0, 0, length])), middle)
    for reach in (20, 30, 40, 50, 60, 70, 80):  # somewhere on the arrow
        drag(middle + reach * along / np.linalg.norm(along), middle + (reach + 60) * along / np.linalg.norm(along))
        if not np.array_equal(top.frame, before):
            break
    assert top.frame[2, 3] > before[2, 3]
    press(window.places["step"])
    np.testing.assert_array_equal(simulation.positions[top.vertices], top.targets)


def test_the_gizmo_turns_the_surface(opened):
    simulation, _, top = with_a_chosen_handle(opened)
    middle, before = np.array(place_of(top.middle)), top.frame.copy()
    start = middle + 48 * np.array([0.5, 0.87])  # on the outer ring
    drag(start, start + 40 * np.array([-0.87, 0.5]))
    R = top.frame[:3, :3]
    assert np.trace(R) < 2.95 and np.allclose(R @ R.T, np.eye(3), atol=1e-5) and np.linalg.det(R) > 0
    np.testing.assert_allclose(top.frame[:3, 3], before[:3, 3], atol=1e-5)
    key("RightArrow")
    np.testing.assert_array_equal(simulation.positions[top.vertices], top.targets)


def test_a_surface_far_from_the_origin_looks_the_same(opened, tmp_path):
    V, F = bumpy(300)
    window = opened(ArapWindow, arap.build((V, F)))
    here = pixels(window, tmp_path / "here.png")
    window.close()
    there = np.array([4.5e5, 5.4e6, 100.0])
    far = pixels(opened(ArapWindow, arap.build((V + there, F))), tmp_path / "far.png")
    assert (np.abs(here.astype(int) - far).max(axis=2) > 20).mean() < 0.01


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_a_surface_of_an_extreme_size_looks_and_moves_the_same(opened, tmp_path, scale):
    V, F = bumpy(300)
    images, moves = [], []
    for size in (1.0, scale):
        simulation = arap.build((size * V, F))
        window = opened(ArapWindow, simulation)
        images.append(pixels(window, tmp_path / "picture.png"))
        handle = simulation.grab(np.arange(3))
        before = handle.frame.copy()
        window.choose(handle)
        tick(2)
        np.testing.assert_array_equal(handle.frame, before)  # nobody has dragged it
        dragged = window._gizmo.get_transform()
        dragged[:3, 3] += window.scene.drawn(window.scene.origin + size * np.array([0.1, 0.2, 0.3]))
        window._gizmo.set_transform(dragged)
        tick(2)
        moves.append((handle.frame - before)[:3, 3] / size)
        window.close()
    assert (np.abs(images[0] - images[1]).max(axis=2) > 20).mean() < 0.01
    np.testing.assert_allclose(moves, [[0.1, 0.2, 0.3]] * 2, atol=1e-5)


def test_pictures_show_the_surface_and_how_it_moves(opened, tmp_path):
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    before = pixels(window, tmp_path / "before.png")
    assert 0.05 < (np.ptp(before, axis=2) > 10).mean() < 0.6  # blue on white
    for _ in range(20):
        window.advance()
    after = pixels(window, tmp_path / "after.png")
    assert (np.abs(after - before).max(axis=2) > 10).mean() > 0.02
    parts = {simulation.compiled, "solve", "other", "drawing"}
    assert len(window.frames) == 20 and set(window.frames[0].seconds) == parts


def test_the_panel_steers_the_deformation(opened):
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    for local_step in (*arap.LOCAL_STEPS[::-1], "NumPy"):
        press(window.places[local_step])
        assert simulation.local_step == local_step
    press(window.places["spokes"])
    assert simulation.energy == "spokes"
    press(window.places["step"])
    assert simulation.time > 0 and len(window.frames) == 1
    press(window.places["reset"])
    assert simulation.time == 0 and not window.frames
    press(window.places["pause"])
    assert not window.is_paused and simulation.time > 0
    press(window.places["remove all"])
    assert simulation.handles == []


def test_handles_are_kept_and_loaded(opened, tmp_path):
    simulation = small_arap()
    window = opened(ArapWindow, simulation)
    simulation.grab(np.arange(5))
    window.path = str(tmp_path / "kept.json")
    tick(2)
    press(window.places["save"])
    simulation.use([])
    press(window.places["load"])
    np.testing.assert_array_equal(simulation.held, np.arange(5))
    window.path = str(tmp_path / "none.json")
    tick(2)
    press(window.places["load"])
    assert "none.json" in window.message and len(simulation.handles) == 1


def test_keys_steer(opened):
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    assert "Space: pause" in window.said[2]
    key("Space")
    assert not window.is_paused and simulation.time > 0
    key("Space")
    assert window.is_paused
    time = simulation.time
    key("RightArrow")
    assert simulation.time == pytest.approx(time + FRAME)
    key("R")
    assert simulation.time == 0
    key("P")
    assert window.mouse == "paint"
    key("P", "Delete")  # none is chosen
    assert window.mouse == "click" and len(simulation.handles) == 2
    window.choose(simulation.handles[0])
    key("Delete")
    assert [h.name for h in simulation.handles] == ["top"] and window.handle is None


def test_keys_that_are_typed_into_a_name_steer_nothing(opened):
    window = opened(ArapWindow, small_arap())
    type_(window.places["handles"], "R P.json")
    key("Space")
    assert window.path == "R P.json" and not window.is_paused
    press(window.places["handles"])
    key("Space", "P")
    assert not window.is_paused and window.mouse == "click"


def test_a_stroke_of_the_brush_makes_a_handle(opened):
    simulation = arap.build(bumpy(2000))
    window = opened(ArapWindow, simulation)
    window.brush = 0.04
    press(window.places["paint"])
    import polyscope as ps

    view = ps.get_view_camera_parameters().get_view_mat()
    tip = nearest_to_camera(simulation.V)
    middle = place_of(simulation.V[tip])
    drag(np.subtract(middle, (60, 0)), np.add(middle, (60, 0)))
    (handle,) = simulation.handles
    np.testing.assert_array_equal(ps.get_view_camera_parameters().get_view_mat(), view)  # the brush does not turn it
    places = np.array([place_of(v) for v in simulation.V[handle.vertices]]) - middle
    assert len(handle.vertices) > 4 and places[:, 0].min() < -30 and places[:, 0].max() > 30
    assert np.abs(places[:, 1]).max() < 40  # within the brush's radius of the stroke
    drag(np.subtract(middle, (60, 60)), np.add(middle, (60, -60)))
    assert len(simulation.handles) == 2  # an anchor beside it, of other vertices
    press(place_of(simulation.positions[handle.vertices[len(places) // 2]]))
    assert len(simulation.handles) == 2 and window.handle is handle  # clicks choose
    press(window.places["click"])
    drag((30, 600), (90, 620))
    assert (ps.get_view_camera_parameters().get_view_mat() != view).any()


def test_what_is_painted_is_seen_before_it_is_held(opened):
    simulation = small_arap()
    window = opened(ArapWindow, simulation)
    window.use_mouse("paint")
    mouse(place_of(simulation.V[nearest_to_camera(simulation.V)]))
    mouse(pressed=True)
    vertices, _ = window._marks()
    assert len(vertices) and not simulation.handles
    mouse(pressed=False)
    np.testing.assert_array_equal(np.sort(simulation.held), np.sort(vertices))


def test_the_mesh_is_saved_and_nothing_is_overwritten_unasked(opened, tmp_path):
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    for _ in range(10):
        key("RightArrow")
    path = tmp_path / "deformed.obj"
    type_(window.places["mesh"], str(path))
    press(window.places["save mesh"])
    assert window.message == f"written: {path}"
    V, F = load(path)
    np.testing.assert_allclose(V, simulation.positions, atol=1e-15)
    np.testing.assert_array_equal(F, simulation.F)
    key("R")
    press(window.places["save mesh"])
    assert f"{path} exists" in window.message and (load(path)[0] == V).all()
    press(window.places["overwrite"])
    press(window.places["save mesh"])
    assert window.message == f"replaced: {path}" and (load(path)[0] == simulation.V).all()
    press(window.places["save mesh"])
    assert "exists" in window.message  # it is allowed once
    type_(window.places["mesh"], "deformed.doc")
    press(window.places["save mesh"])
    assert "unknown mesh format" in window.message


def test_new_constraints_are_factored_beside_the_window_which_says_so(opened, monkeypatch):
    simulation = arap.build(bumpy(300), arap.ArapOptions(background=True))
    window = opened(ArapWindow, simulation)
    factored, may_end = simulation._factored, threading.Event()
    monkeypatch.setattr(simulation, "_factored", lambda held: may_end.wait(60) and factored(held))
    press(place_of(simulation.V[nearest_to_camera(simulation.V)]))
    assert "factoring the new constraints ..." in window.said
    simulation.handles[0].frame[:3, 3] += 1
    key("RightArrow")
    np.testing.assert_array_equal(simulation.positions, simulation.V)  # as before the click
    may_end.set()
    while simulation.is_refactoring:
        tick()
    key("RightArrow")
    assert "factoring the new constraints ..." not in window.said
    np.testing.assert_array_equal(simulation.positions[simulation.held], simulation.targets)


def test_sliders_change_the_cloth_without_compiling(opened, tmp_path):
    simulation = cloth.build(grid(100))
    window = opened(ClothWindow, simulation)
    program, stretch = simulation.program, simulation.material.stretch
    drag(window.places["stretch"], np.add(window.places["stretch"], (40, 0)))
    assert simulation.material.stretch != stretch and simulation.program is program
    drag(window.places["wind x"], np.add(window.places["wind x"], (30, 0)))
    assert simulation.material.wind[0] > 0
    before = pixels(window, tmp_path / "before.png")
    for _ in range(5):
        press(window.places["step"])
    assert simulation.positions[:, 2].mean() < -0.05 and "energy" in window.frames[-1].measures
    assert (np.abs(pixels(window, tmp_path / "after.png") - before).max(axis=2) > 10).mean() > 0.01


def test_a_pin_holds_the_cloth(opened):
    simulation = cloth.build(grid(100), cloth.ClothOptions(obstacles=()))
    window = opened(ClothWindow, simulation)
    window.brush = 0.0
    tick(2)
    corner = simulation.V[0]  # the panel hides others
    inside = corner + 0.02 * (simulation.V.mean(axis=0) - corner)
    press(place_of(inside))
    assert len(simulation.held) == 1
    press(window.places["pause"])
    tick(5)
    np.testing.assert_allclose(simulation.positions[simulation.held], simulation.targets, atol=1e-9)
    assert simulation.positions[:, 2].min() < -0.01


def test_what_fails_pauses_and_is_said(opened, monkeypatch):
    simulation = small_arap()
    window = opened(ArapWindow, simulation)
    from geoopt.errors import GeooptError

    def fail():
        raise GeooptError("it is singular")

    monkeypatch.setattr(simulation, "step", fail)
    window.is_paused = False
    tick(2)
    assert window.is_paused and window.message == "it is singular"
