"""Pictures without a window, by polyscope on EGL."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.apps.origin import Scene
from geoopt.apps.upright import AUTO, turned, upward
from geoopt.errors import PictureError
from geoopt.output import beside

BESIDE_COLOURS = 0.8  # of a picture's width is left by what tells their meaning, on both sides
MARGIN = 0.9  # of a picture's half height that is drawn in
FROM = np.array([0.45, 0.35, 0.8])  # direction of the camera
ONE_SIDE, BOTH_SIDES = (1024, 768), (1600, 800)  # pixels of pictures
GAP = 0.15  # between these, relative to the width of one
CHECKERS = 40  # squares along a map
GOLDEN = (5**0.5 - 1) / 2
PNG_END = b"IEND\xaeB`\x82"  # with which every whole PNG file ends


def render(
    V: np.ndarray,
    F: np.ndarray,
    values: np.ndarray,
    name: str,
    path: Path,
    least: float = 0,
    both_sides: bool = True,
    up: str = AUTO,
    timeout: float = 120,
) -> None:
    """Write a picture of a mesh, upright, coloured by a value per vertex, with the colours' meaning.

    least : what all colours tell apart at least;  both_sides : show it from behind, too, so that its front is seen
    up : the axis that points upward, see `upright.upward`
    Raises PictureError where OpenGL/EGL is missing or the picture cannot be written.
    """
    with beside(path) as new:
        _in_own_process(_render, (_upright(V, F, up), F, values, name, new, least, both_sides), timeout)


def render_layout(
    V: np.ndarray,
    F: np.ndarray,
    x: np.ndarray,
    values: np.ndarray,
    flat: Path,
    checkered: Path,
    up: str = AUTO,
    timeout: float = 120,
) -> None:
    """Write two pictures of a map of a mesh to the plane: its triangles there, and the mesh as a checkerboard.

    x : (n, 2) positions in the plane;  values : (m,) that colour the triangles there;  up : see `render`
    Raises PictureError where OpenGL/EGL is missing or a picture cannot be written.
    """
    with beside(flat) as new, beside(checkered) as other:
        _in_own_process(_render_layout, (_upright(V, F, up), F, x, values, new, other), timeout)


def render_parts(
    V: np.ndarray, F: np.ndarray, parts: np.ndarray, path: Path, up: str = AUTO, timeout: float = 120
) -> None:
    """Write a picture of a mesh whose triangles are coloured by the part (m,) that they belong to, from both sides.

    up : see `render`

    Raises PictureError where OpenGL/EGL is missing or the picture cannot be written.
    """
    with beside(path) as new:
        _in_own_process(_render_parts, (_upright(V, F, up), F, parts, new), timeout)


def _upright(V: np.ndarray, F: np.ndarray, up: str) -> np.ndarray:
    """Positions as pictures show them, whose second axis points upward."""
    return turned(V, upward(V, F, asked=up))


def require_opengl(timeout: float = 120) -> None:
    """Raises PictureError where `start` could not give this process OpenGL without a window."""
    _in_own_process(start, (), timeout)


def start(size: tuple[int, int] = ONE_SIDE) -> Any:
    """Polyscope for pictures of a size [pixels] without a window, settings of an earlier run left alone."""
    import polyscope as ps

    ps.set_allow_headless_backends(True)
    ps.set_use_prefs_file(False)
    ps.set_verbosity(0)
    ps.set_window_size(*size)
    ps.init("openGL3_egl")
    ps.set_ground_plane_mode("none")
    ps.set_build_default_gui_panels(False)
    ps.set_SSAA_factor(2)
    return ps


def shoot(ps: Any, path: Path, **settings: Any) -> None:
    """Write what polyscope shows as a PNG file, where there is none yet. Raises PictureError where it is not written,
    or not completely."""
    ps.screenshot(str(path), transparent_bg=False, **settings)
    if not path.is_file() or not path.read_bytes().endswith(PNG_END):
        path.unlink(missing_ok=True)
        raise PictureError(f"no picture could be written in {path.parent}; is there room, and may you write there?")


def _in_own_process(work: Callable[..., Any], arguments: tuple, timeout: float) -> None:
    """OpenGL that is missing or broken can take a process with it: one of its own."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    worker = context.Process(target=_report, args=(work, arguments, send), daemon=True)
    worker.start()
    send.close()
    is_known = False
    try:
        is_known, message = receive.recv() if receive.poll(timeout) else (False, f"no picture after {timeout:.0f} s")
    except EOFError:
        message = "the renderer crashed"
    worker.join(5)
    if worker.is_alive():
        worker.kill()
    if is_known:
        raise PictureError(message)
    if message:
        remedy = "install OpenGL with EGL (Debian: apt install libegl1 libgl1 libgl1-mesa-dri)"
        raise PictureError(f"cannot render without a display: {message}; {remedy}")


def _report(work: Callable[..., Any], arguments: tuple, send: Any) -> None:
    """Send what is wrong, nothing if all is well, and whether that is the whole message."""
    try:
        work(*arguments)
        send.send((False, ""))
    except PictureError as error:
        send.send((True, str(error)))
    except Exception as error:
        what = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        send.send((False, what))


def _render(
    V: np.ndarray, F: np.ndarray, values: np.ndarray, name: str, path: Path, least: float, both_sides: bool
) -> None:
    ps, V = start(BOTH_SIDES if both_sides else ONE_SIDE), Scene.of(V).drawn(V)
    if both_sides:
        V, F, values = _both_sides(V, F, values)
    surface = ps.register_surface_mesh("mesh", V, F, smooth_shade=True)
    low, high = np.quantile(values, [0.02, 0.98])
    colours = {"cmap": "viridis", "vminmax": (float(low), float(max(high, low + least)))}
    surface.add_scalar_quantity(name, values, enabled=True, onscreen_colorbar_enabled=True, **colours)
    _shoot(ps, V, FROM, path, BESIDE_COLOURS, include_UI=True)


def _render_parts(V: np.ndarray, F: np.ndarray, parts: np.ndarray, path: Path) -> None:
    ps, V = start(BOTH_SIDES), Scene.of(V).drawn(V)
    V, F, _ = _both_sides(V, F, np.zeros(len(V)))
    surface = ps.register_surface_mesh("mesh", V, F, edge_width=0)
    hues = np.modf(np.arange(parts.max() + 1) * GOLDEN)[0]  # neighbours in number are far apart in colour
    colours = 0.55 + 0.35 * np.cos(2 * np.pi * (hues[:, None] + [0, 1 / 3, 2 / 3]))
    surface.add_color_quantity("parts", colours[np.tile(parts, 2)], defined_on="faces", enabled=True)
    _shoot(ps, V, FROM, path)


def _both_sides(V: np.ndarray, F: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mesh and, to its right, the same from behind, for a camera in the direction `FROM`."""
    V = V - (V.max(axis=0) + V.min(axis=0)) / 2
    right = np.cross([0, 1, 0], FROM)
    right /= np.linalg.norm(right)
    turned = V * [-1, 1, -1]
    turned = turned + ((V @ right).max() - (turned @ right).min() + GAP * np.ptp(V @ right)) * right
    return np.concatenate([V, turned]), np.concatenate([F, F + len(V)]), np.tile(values, 2)


def _render_layout(
    V: np.ndarray, F: np.ndarray, x: np.ndarray, values: np.ndarray, flat: Path, checkered: Path
) -> None:
    ps, V = start(), Scene.of(V).drawn(V)
    surface = ps.register_surface_mesh("mesh", V, F, smooth_shade=True)
    size = float(np.ptp(x, axis=0).max() / CHECKERS)
    kind = {"defined_on": "vertices", "viz_style": "checker", "checker_size": size}
    surface.add_parameterization_quantity("map", x, enabled=True, **kind)
    _shoot(ps, V, FROM, checkered)
    surface.remove()
    plane = np.column_stack([x, np.zeros(len(x))])
    plane = Scene.of(plane).drawn(plane)
    surface = ps.register_surface_mesh("plane", plane, F, material="flat", edge_width=0.2)
    surface.add_scalar_quantity("values", values, defined_on="faces", enabled=True, cmap="coolwarm", vminmax=(-2, 2))
    _shoot(ps, plane, np.array([0.0, 0.0, 0.95]), flat)


def _shoot(ps: Any, V: np.ndarray, direction: np.ndarray, path: Path, width: float = 1, **settings: Any) -> None:
    """A picture of all that there is, from a direction. width : the share of the picture's that is drawn in"""
    centre, direction = (V.max(axis=0) + V.min(axis=0)) / 2, direction / np.linalg.norm(direction)
    ps.look_at(centre + np.linalg.norm(np.ptp(V, axis=0)) * direction, centre)
    camera = ps.get_view_camera_parameters()
    slope = MARGIN * np.tan(np.radians(camera.get_fov_vertical_deg()) / 2)
    up, right = (abs((V - centre) @ axis) for axis in (camera.get_up_dir(), camera.get_right_dir()))
    # a position is seen where it is no farther from the axis than its distance from the camera allows
    distance = ((V - centre) @ direction + np.maximum(up, right / (width * camera.get_aspect())) / slope).max()
    ps.look_at(centre + distance * direction, centre)
    shoot(ps, path, **settings)
