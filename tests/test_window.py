"""The windows, driven by mouse events in polyscope's backend without a display."""

from __future__ import annotations

import numpy as np
import pytest

from geoopt.apps import arap, cloth, handles
from geoopt.apps.arap_window import ArapWindow
from geoopt.apps.cloth_window import ClothWindow
from geoopt.apps.picture import PictureError, require_opengl
from geoopt.meshes import bumpy
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
    window.clicks_grab = False
    press(place_of(simulation.V[nearest_to_camera(simulation.V)]))
    assert simulation.handles == []


def test_the_gizmo_drags_the_surface(opened):
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    top = simulation.handles[1]
    window.choose(top)
    tick(3)
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
    assert len(window.frames) == 20 and set(window.frames[0].seconds) == {"local step", "solve", "drawing"}


def test_the_panel_steers_the_deformation(opened):
    simulation = small_arap()
    simulation.load(handles.SAMPLES / "arap.json")
    window = opened(ArapWindow, simulation)
    press(window.places["local step by NumPy"])
    assert simulation.is_reference
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
