"""The window of an app: polyscope draws the simulation, handles are clicked and dragged, a panel steers and times."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.apps import picture
from geoopt.apps.handles import STILL, Handle
from geoopt.apps.origin import Scene
from geoopt.apps.panel import Panel, imgui
from geoopt.apps.recording import Recording
from geoopt.apps.simulation import Frame, Simulation
from geoopt.apps.upright import turned
from geoopt.errors import ArgumentError, GeooptError

BLUE, GREY = (0.42, 0.61, 0.83), (0.82, 0.82, 0.8)
CHOSEN, HELD, PAINTED = (0.85, 0.33, 0.2), (0.2, 0.2, 0.2), (0.95, 0.7, 0.1)  # vertices
MOUSE = ("look", "click", "paint")  # what the left button does on the surface: turn the view, or hold vertices
CLICK = 4.0  # a mouse that moved further than this between press and release has dragged [pixels]
KEPT = 150  # frames that plots and means go back


@dataclass(eq=False)
class Stroke:
    """From the press of the mouse to its release.

    start : [pixels];  is_painted : (n,) vertices;  last : (3,) point on the surface, if there was one
    """

    start: tuple[float, float]
    is_painted: np.ndarray
    last: np.ndarray | None = None


class Window(Panel):
    """One simulation in polyscope's one window. Subclasses add to the panel and to the scene.

    is_headless : draw without a display; see `picture.require_opengl`
    recording : gets every frame and its picture, if given
    """

    title = "geoopt"
    # relative to the size of what is seen, along two level axes and the one upward
    view_from, right = np.array([0.4, -1.1, 0.4]), np.array([1.1, 0.4, 0.0])

    def __init__(self, simulation: Simulation, is_headless: bool, recording: Recording | None = None):
        super().__init__()
        self.simulation, self.recording = simulation, recording
        self.is_paused, self.mouse, self.brush = False, "click", 0.05
        self.handle: Handle | None = None  # the one that the gizmo moves
        self.path, self.mesh_path, self.message = "handles.json", "deformed.obj", ""
        self.may_overwrite = False
        self.scene = Scene.of(simulation.V)
        self.frames: deque[Frame] = deque(maxlen=KEPT)
        self.keys = {  # of ImGui, what they do, and how
            "Space": ("pause", self.toggle_pause),
            "RightArrow": ("step", self.step),
            "R": ("reset", self.reset),
            "P": ("paint or click", self.toggle_paint),
            "Delete": ("remove", self.remove),
        }
        self._stroke: Stroke | None = None
        self._drawn_since = time.perf_counter()
        self._drawing = 0.0  # seconds between the last two turns
        self._ps = picture.start() if is_headless else _with_display()
        self._register()
        self.draw()
        self._ps.set_user_callback(self._tick)

    def show(self) -> None:
        """Run until the window is closed."""
        self._ps.show()

    def close(self) -> None:
        """Let the next window have polyscope."""
        self._ps.set_do_default_mouse_interaction(True)
        self._ps.clear_user_callback()
        self._ps.remove_all_transformation_gizmos()
        self._ps.remove_all_structures()

    # -- drawing --------------------------------------------------------------------------------------

    def _register(self) -> None:
        ps, simulation = self._ps, self.simulation
        ps.set_program_name(self.title)
        ps.set_build_default_gui_panels(False)
        ps.set_right_gui_pane_width(380)
        ps.set_up_dir(f"{simulation.up}_up")
        ps.set_automatically_compute_scene_extents(False)  # or the view would follow what falls
        low, high = map(self.scene.drawn, self.bounds())
        size = float(np.linalg.norm(high - low))
        ps.set_length_scale(size)
        ps.set_bounding_box(low, high)
        self._surface = self._registered("surface", simulation.V, simulation.F, BLUE)
        self._surface.set_back_face_policy("identical")
        self._gizmo = ps.add_transformation_gizmo("handle")
        self._gizmo.set_enabled(False)
        middle, directions = (low + high) / 2, np.stack([self.view_from, self.right])
        view_from, right = directions if simulation.up == "z" else turned(directions, "z")
        if self.recording is None:  # the panel hides the right
            middle = middle + 0.2 * size * right
        ps.look_at(middle + size * view_from, middle)

    def _registered(self, name: str, V: np.ndarray, F: np.ndarray, color: Any) -> Any:
        return self._ps.register_surface_mesh(name, self.scene.drawn(V), F, smooth_shade=True, color=color)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest corner of what is to be seen: at the start, and of what handles pull on their way."""
        places = [self.simulation.V, *(h.targets_at(t) for h in self.simulation.handles for t in h.track.times)]
        return np.min([x.min(axis=0) for x in places], axis=0), np.max([x.max(axis=0) for x in places], axis=0)

    def draw(self) -> None:
        """Show where the simulation is now."""
        self._surface.update_vertex_positions(self.scene.drawn(self.simulation.positions))
        if self.handle is not None:
            self._gizmo.set_transform(self.scene.drawn_frame(self.handle.frame))
        vertices, colors = self._marks()
        if not len(vertices):
            self._ps.remove_point_cloud("handles", error_if_absent=False)
            return
        places = self.scene.drawn(self.simulation.positions[vertices])
        cloud = self._ps.register_point_cloud("handles", places, radius=0.002)
        cloud.add_color_quantity("whose", colors, enabled=True)

    def _marks(self) -> tuple[np.ndarray, np.ndarray]:
        """The vertices (k,) that are held or painted, and their colors (k, 3)."""
        marks = [(h.vertices, CHOSEN if h is self.handle else HELD) for h in self.simulation.handles]
        if self._stroke is not None:
            marks.append((np.flatnonzero(self._stroke.is_painted), PAINTED))
        vertices = np.concatenate([np.zeros(0, np.int64), *(v for v, _ in marks)])
        return vertices, np.concatenate([np.zeros((0, 3)), *(np.tile(color, (len(v), 1)) for v, color in marks)])

    def write_picture(self, path: Path, with_panel: bool = False) -> None:
        """Write what the window shows as a PNG file."""
        picture.shoot(self._ps, path, include_UI=with_panel)

    # -- one turn of the window -----------------------------------------------------------------------

    def _tick(self) -> None:
        self._drawing = time.perf_counter() - self._drawn_since
        self.said.clear()
        self._read_keys()
        self._read_mouse()
        self._read_gizmo()
        if not self.is_paused:
            self._advance_or_pause()
        self._panel()
        self._drawn_since = time.perf_counter()

    def _advance_or_pause(self) -> None:
        try:
            self.advance()
        except GeooptError as error:
            self.is_paused, self.message = True, str(error)

    def advance(self) -> None:
        """Go on by one frame, draw and record it."""
        frame = self.simulation.advance()
        self.draw()
        frame = replace(frame, seconds=frame.seconds | {"drawing": self._drawing})
        self.frames.append(frame)
        if self.recording is not None:
            self.recording.add(frame, self.write_picture)

    def _read_gizmo(self) -> None:
        if self.handle is None:
            return
        drawn = self._gizmo.get_transform()
        rounding = 1e-5 * np.abs(self.scene.drawn(self.simulation.V)).max()  # polyscope's has single precision
        if not np.allclose(drawn, self.scene.drawn_frame(self.handle.frame), atol=max(rounding, 1e-6)):
            self.handle.frame, self.handle.track = self.scene.frame(drawn), STILL  # dragged away from its path

    def _read_keys(self) -> None:
        psim = imgui()
        if psim.GetIO().WantTextInput:  # a name is being typed
            return
        for key, (_, action) in self.keys.items():
            if psim.IsKeyPressed(getattr(psim, f"ImGuiKey_{key}"), False):
                action()

    def _read_mouse(self) -> None:
        psim = imgui()
        io = psim.GetIO()
        place = tuple(io.MousePos)
        if psim.IsMouseClicked(0) and self.mouse != "look" and not io.WantCaptureMouse:
            self._stroke = Stroke(place, np.zeros(len(self.simulation.V), bool))
        if self._stroke is None:
            return
        is_released = psim.IsMouseReleased(0)
        is_click = np.hypot(*np.subtract(place, self._stroke.start)) < CLICK
        if self.mouse == "paint" or (is_click and is_released):
            self._paint(self._stroke, place)
        if is_released:
            stroke, self._stroke = self._stroke, None
            self._finish(stroke, is_click)

    def _paint(self, stroke: Stroke, place: tuple[float, float]) -> None:
        """Add the vertices near the surface at a place of the window [pixels], and on the way there."""
        hit = self._ps.pick(screen_coords=place)
        if not hit.is_hit or hit.structure_name not in ("surface", "handles"):
            return
        end = self.scene.positions(np.array(hit.position))
        start = end if stroke.last is None else stroke.last
        distances = _distances(self.simulation.positions, start, end)
        stroke.is_painted |= distances < self.brush * np.linalg.norm(np.ptp(self.simulation.V, axis=0))
        stroke.is_painted[np.argmin(distances)] = True
        stroke.last = end
        self.draw()

    def _finish(self, stroke: Stroke, is_click: bool) -> None:
        """Choose the handle that was clicked, or make one of what was painted."""
        if stroke.last is None:
            return
        self.draw()  # without what was painted, which may be refused
        simulation = self.simulation
        nearest = int(np.argmin(np.linalg.norm(simulation.positions - stroke.last, axis=1)))
        there = next((h for h in simulation.handles if is_click and nearest in h.vertices), None)
        self.attempt(lambda: self.choose(there or simulation.grab(np.flatnonzero(stroke.is_painted))))

    def choose(self, handle: Handle | None) -> None:
        """Give a handle, or none, to the gizmo, which would be in the way of a brush."""
        self.handle = handle
        self._gizmo.set_enabled(handle is not None and self.mouse != "paint")
        self._ps.set_do_default_mouse_interaction(self.mouse != "paint")
        self.draw()

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something that may be refused, and say so, or what it says, in the panel."""
        try:
            said = action()
            self.message = said if isinstance(said, str) else ""
        except (GeooptError, OSError) as error:
            self.message = str(error)

    def toggle_pause(self) -> None:
        """Pause, or go on."""
        self.is_paused = not self.is_paused

    def step(self) -> None:
        """Go on by one frame, and pause there."""
        self.is_paused = True
        self._advance_or_pause()

    def reset(self) -> None:
        """Go back to the start."""
        self.simulation.reset()
        self.frames.clear()
        self.choose(self.handle)

    def toggle_paint(self) -> None:
        """Let the mouse paint, or click."""
        self.use_mouse("click" if self.mouse == "paint" else "paint")

    def use_mouse(self, what: str) -> None:
        """Let the left button do one of `MOUSE`."""
        if what != self.mouse:
            self.mouse, self._stroke = what, None
            self.choose(self.handle)

    def remove(self) -> None:
        """Let the chosen handle go."""
        gone = self.handle
        if gone is not None:
            self.attempt(lambda: (self.simulation.release(gone), self.choose(None)))

    def write(self, path: Path, write: Callable[[Path], object]) -> str:
        """Write a file, in place of another one only where that is allowed, once; returns what it did.

        Raises ArgumentError where it is not allowed.
        """
        exists = path.exists()
        if exists and not self.may_overwrite:
            raise ArgumentError(f"{path} exists; give another name or allow to overwrite it")
        write(path)
        self.may_overwrite = False
        return f"{'replaced' if exists else 'written'}: {path}"

    # -- the panel ------------------------------------------------------------------------------------

    def _panel(self) -> None:
        self.say(f"{len(self.simulation.V):,} vertices, {len(self.simulation.F):,} triangles")
        self.say(self.simulation.solver_note)
        self._run_controls()
        self._timing_strip()
        self._handle_controls()
        self.controls()
        self._file_controls()
        if self.message:
            self.say(self.message)

    def controls(self) -> None:
        """What an app adds to the panel."""

    def _run_controls(self) -> None:
        psim = imgui()
        self.is_paused = self.checkbox("pause", self.is_paused)
        psim.SameLine()
        if self.button("step"):
            self.step()
        psim.SameLine()
        if self.button("reset"):
            self.reset()
        self.say(", ".join(f"{key}: {what}" for key, (what, _) in self.keys.items()))

    def _handle_controls(self) -> None:
        psim = imgui()
        self.use_mouse(self.choice(MOUSE, self.mouse))
        psim.SameLine()
        if self.button("remove"):
            self.remove()
        psim.SameLine()
        if self.button("remove all"):
            self.attempt(lambda: (self.simulation.use([]), self.choose(None)))
        self.brush = self.slider("brush", self.brush, 0.0, 0.3)

    def _file_controls(self) -> None:
        psim, simulation = imgui(), self.simulation
        self.path = self.text("handles", self.path)
        psim.SameLine()
        if self.button("save"):
            self.attempt(lambda: self.write(Path(self.path), simulation.save))
        psim.SameLine()
        if self.button("load"):
            self.attempt(lambda: (simulation.load(Path(self.path)), self.choose(None)))
        self.mesh_path = self.text("mesh", self.mesh_path)
        psim.SameLine()
        if self.button("save mesh"):
            self.attempt(lambda: self.write(Path(self.mesh_path), simulation.save_mesh))
        psim.SameLine()
        self.may_overwrite = self.checkbox("overwrite", self.may_overwrite)

    def _timing_strip(self) -> None:
        if not self.frames:
            return
        mean = means([f.seconds for f in self.frames])
        total = max(sum(mean.values()), 1e-9)
        for part, seconds in mean.items():
            self.bar(seconds / total, f"{part}: {1e3 * seconds:.2f} ms")
        self.say(f"{1 / total:.0f} frames/s")


def means(rows: list[dict[str, float]]) -> dict[str, float]:
    """The mean of each entry over all rows, 0 in rows that lack it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: sum(row.get(name, 0.0) for row in rows) / len(rows) for name in names}


def _distances(x: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """From points x (n, 3) to the straight line between two points: (n,)."""
    way = end - start
    along = np.clip((x - start) @ way / max(way @ way, 1e-300), 0, 1)
    return np.linalg.norm(x - start - along[:, None] * way, axis=1)


def require_display() -> None:
    """Raises GeooptError where no window can be opened."""
    if sys.platform == "linux" and not _has_display():
        raise GeooptError("there is no display to open a window on; --headless --out DIR runs without one")


def _with_display() -> Any:
    import polyscope as ps

    require_display()
    ps.set_use_prefs_file(False)
    ps.set_verbosity(0)
    ps.init()
    ps.set_ground_plane_mode("none")
    return ps


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
