"""The window of an app: polyscope draws the simulation, handles are clicked and dragged, a panel steers and times."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.apps import picture
from geoopt.apps.handles import STILL, Handle
from geoopt.apps.recording import Recording
from geoopt.apps.simulation import Frame, Simulation
from geoopt.errors import GeooptError

BLUE, RED, GREY = (0.42, 0.61, 0.83), (0.85, 0.33, 0.2), (0.82, 0.82, 0.8)
CLICK = 4.0  # a mouse that moved further than this between press and release has dragged [pixels]
KEPT = 150  # frames that plots and means go back


class Window:
    """One simulation in polyscope's one window. Subclasses add to the panel and to the scene.

    is_headless : draw without a display; see `picture.require_opengl`
    recording : gets every frame and its picture, if given
    """

    title = "geoopt"
    view_from = np.array([0.4, -1.1, 0.4])  # relative to the size of what is seen, z up

    def __init__(self, simulation: Simulation, is_headless: bool, recording: Recording | None = None):
        self.simulation, self.recording = simulation, recording
        self.is_paused, self.clicks_grab, self.brush = False, True, 0.05
        self.handle: Handle | None = None  # the one that the gizmo moves
        self.path, self.message = "handles.json", ""
        self.frames: deque[Frame] = deque(maxlen=KEPT)
        self.places: dict[str, tuple[float, float]] = {}  # the middle of each widget [pixels]
        self._pressed: tuple[float, float] | None = None
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
        self._ps.clear_user_callback()
        self._ps.remove_all_transformation_gizmos()
        self._ps.remove_all_structures()

    # -- drawing --------------------------------------------------------------------------------------

    def _register(self) -> None:
        ps, simulation = self._ps, self.simulation
        ps.set_program_name(self.title)
        ps.set_build_default_gui_panels(False)
        ps.set_right_gui_pane_width(380)
        ps.set_up_dir("z_up")
        ps.set_automatically_compute_scene_extents(False)  # or the view would follow what falls
        low, high = self.bounds()
        size = float(np.linalg.norm(high - low))
        ps.set_length_scale(size)
        ps.set_bounding_box(low, high)
        self._surface = ps.register_surface_mesh("surface", simulation.V, simulation.F, smooth_shade=True, color=BLUE)
        self._surface.set_back_face_policy("identical")
        self._gizmo = ps.add_transformation_gizmo("handle")
        self._gizmo.set_enabled(False)
        middle = (low + high) / 2
        if self.recording is None:  # the panel hides the right
            middle = middle + 0.2 * size * np.array([1.1, 0.4, 0.0])
        ps.look_at(middle + size * self.view_from, middle)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest corner of what is to be seen at the start."""
        return self.simulation.V.min(axis=0), self.simulation.V.max(axis=0)

    def draw(self) -> None:
        """Show where the simulation is now."""
        self._surface.update_vertex_positions(self.simulation.positions)
        if self.handle is not None:
            self._gizmo.set_transform(self.handle.frame)
        held = self.simulation.held
        if not len(held):
            self._ps.remove_point_cloud("handles", error_if_absent=False)
            return
        cloud = self._ps.register_point_cloud("handles", self.simulation.positions[held], radius=0.002, color=RED)
        chosen = [np.full(len(h.vertices), h is self.handle) for h in self.simulation.handles]
        colors = np.where(np.concatenate(chosen)[:, None], RED, (0.2, 0.2, 0.2))
        cloud.add_color_quantity("chosen", colors, enabled=True)

    def write_picture(self, path: Path, with_panel: bool = False) -> None:
        """Write what the window shows as a PNG file."""
        self._ps.screenshot(str(path), transparent_bg=False, include_UI=with_panel)

    # -- one turn of the window -----------------------------------------------------------------------

    def _tick(self) -> None:
        self._drawing = time.perf_counter() - self._drawn_since
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
        frame = self._gizmo.get_transform().astype(float)
        rounding = 1e-5 * np.abs(self.simulation.V).max()  # polyscope's has single precision
        if not np.allclose(frame, self.handle.frame, atol=max(rounding, 1e-6)):
            self.handle.frame, self.handle.track = frame, STILL  # dragged away from its path

    def _read_mouse(self) -> None:
        psim = _imgui()
        io = psim.GetIO()
        if psim.IsMouseClicked(0):
            self._pressed = None if io.WantCaptureMouse else tuple(io.MousePos)
        if psim.IsMouseReleased(0) and self._pressed is not None and self.clicks_grab:
            if np.hypot(*np.subtract(io.MousePos, self._pressed)) < CLICK:
                self.click(self._pressed)
            self._pressed = None

    def click(self, place: tuple[float, float]) -> None:
        """Choose the handle at a place of the window [pixels], or make one of the vertices near it."""
        hit = self._ps.pick(screen_coords=place)
        if not hit.is_hit or hit.structure_name not in ("surface", "handles"):
            return
        simulation = self.simulation
        distances = np.linalg.norm(simulation.positions - hit.position, axis=1)
        nearest = int(np.argmin(distances))
        there = next((h for h in simulation.handles if nearest in h.vertices), None)
        reach = self.brush * np.linalg.norm(np.ptp(simulation.V, axis=0))
        near = np.union1d(np.flatnonzero(distances < reach), [nearest])
        self.attempt(lambda: self.choose(there or simulation.grab(near)))

    def choose(self, handle: Handle | None) -> None:
        """Give a handle, or none, to the gizmo."""
        self.handle = handle
        self._gizmo.set_enabled(handle is not None)
        self.draw()

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something that may be refused, and say so in the panel."""
        try:
            action()
            self.message = ""
        except (GeooptError, OSError) as error:
            self.message = str(error)

    # -- the panel ------------------------------------------------------------------------------------

    def _panel(self) -> None:
        self.say(f"{len(self.simulation.V):,} vertices, {len(self.simulation.F):,} triangles")
        self.say(self.simulation.solver_note)
        self._run_controls()
        self._handle_controls()
        self.controls()
        self._timing_strip()
        if self.message:
            self.say(self.message)

    def controls(self) -> None:
        """What an app adds to the panel."""

    def _run_controls(self) -> None:
        psim = _imgui()
        self.is_paused = self.checkbox("pause", self.is_paused)
        psim.SameLine()
        if self.button("step"):
            self.is_paused = True
            self._advance_or_pause()
        psim.SameLine()
        if self.button("reset"):
            self.simulation.reset()
            self.frames.clear()
            self.choose(self.handle)

    def _handle_controls(self) -> None:
        psim, simulation = _imgui(), self.simulation
        self.clicks_grab = self.checkbox("click to hold", self.clicks_grab)
        self.brush = self.slider("brush", self.brush, 0.0, 0.3)
        if self.button("remove") and self.handle is not None:
            gone = self.handle
            self.attempt(lambda: (simulation.release(gone), self.choose(None)))
        psim.SameLine()
        if self.button("remove all"):
            self.attempt(lambda: (simulation.use([]), self.choose(None)))
        _, self.path = psim.InputText("file", self.path)
        if self.button("save"):
            self.attempt(lambda: simulation.save(Path(self.path)))
        psim.SameLine()
        if self.button("load"):
            self.attempt(lambda: (simulation.load(Path(self.path)), self.choose(None)))

    def _timing_strip(self) -> None:
        psim = _imgui()
        if not self.frames:
            return
        mean = means([f.seconds for f in self.frames])
        total = max(sum(mean.values()), 1e-9)
        for part, seconds in mean.items():
            psim.ProgressBar(seconds / total, (-1.0, 0.0), f"{part}: {1e3 * seconds:.2f} ms")
        psim.Text(f"{1 / total:.0f} frames/s")

    # -- widgets that tell where they are ---------------------------------------------------------------

    def button(self, label: str) -> bool:
        """Whether it was pressed."""
        return self._placed(label, _imgui().Button(label))

    def checkbox(self, label: str, is_on: bool) -> bool:
        """Whether it is on now."""
        return self._placed(label, _imgui().Checkbox(label, is_on))[1]

    def slider(self, label: str, value: float, low: float, high: float) -> float:
        """Its value now."""
        return self._placed(label, _imgui().SliderFloat(label, value, low, high, "%.4g"))[1]

    def plot(self, label: str, values: list[float]) -> None:
        """Numbers over time."""
        _imgui().PlotLines(label, np.array(values, np.float32), graph_size=(0.0, 60.0))

    def say(self, text: str) -> None:
        """A line, or more where it is long."""
        _imgui().TextWrapped(text)

    def _placed(self, label: str, answer: Any) -> Any:
        psim = _imgui()
        low, high = psim.GetItemRectMin(), psim.GetItemRectMax()
        self.places[label] = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
        return answer


def means(rows: list[dict[str, float]]) -> dict[str, float]:
    """The mean of each entry over all rows, 0 in rows that lack it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: sum(row.get(name, 0.0) for row in rows) / len(rows) for name in names}


def _imgui() -> Any:
    import polyscope.imgui as psim

    return psim


def _with_display() -> Any:
    import polyscope as ps

    if sys.platform == "linux" and not _has_display():
        raise GeooptError("there is no display to open a window on; --headless --out DIR runs without one")
    ps.set_use_prefs_file(False)
    ps.set_verbosity(0)
    ps.init()
    ps.set_ground_plane_mode("none")
    return ps


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
