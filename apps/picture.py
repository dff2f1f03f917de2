"""Pictures without a window, by polyscope on EGL."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class PictureError(Exception):
    """No picture could be rendered; the message says what is missing."""


def render(V: np.ndarray, F: np.ndarray, values: np.ndarray, name: str, path: Path, timeout: float = 120) -> None:
    """Write a picture of a mesh coloured by a value per vertex.

    Raises PictureError where OpenGL/EGL is missing.
    """
    _in_own_process(_render, (V, F, values, name, str(path)), timeout)


def require_opengl(timeout: float = 120) -> None:
    """Raises PictureError where `start` could not give this process OpenGL without a window."""
    _in_own_process(start, (), timeout)


def start(size: tuple[int, int] = (1024, 768)) -> Any:
    """Polyscope for pictures of a size [pixels] without a window, settings of an earlier run left alone."""
    import polyscope as ps

    ps.set_allow_headless_backends(True)
    ps.set_use_prefs_file(False)
    ps.set_verbosity(0)
    ps.set_window_size(*size)
    ps.init("openGL3_egl")
    ps.set_ground_plane_mode("none")
    ps.set_SSAA_factor(2)
    return ps


def _in_own_process(work: Callable[..., Any], arguments: tuple, timeout: float) -> None:
    """OpenGL that is missing or broken can take a process with it: one of its own."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    worker = context.Process(target=_report, args=(work, arguments, send), daemon=True)
    worker.start()
    send.close()
    try:
        message = receive.recv() if receive.poll(timeout) else f"no picture after {timeout:.0f} s"
    except EOFError:
        message = "the renderer crashed"
    worker.join(5)
    if worker.is_alive():
        worker.kill()
    if message:
        remedy = "install OpenGL with EGL (Debian: apt install libegl1 libgl1 libgl1-mesa-dri)"
        raise PictureError(f"cannot render without a display: {message}; {remedy}")


def _report(work: Callable[..., Any], arguments: tuple, send: Any) -> None:
    try:
        work(*arguments)
        send.send("")
    except Exception as error:
        send.send(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")


def _render(V: np.ndarray, F: np.ndarray, values: np.ndarray, name: str, path: str) -> None:
    ps = start()
    surface = ps.register_surface_mesh("mesh", V, F, smooth_shade=True)
    low, high = np.quantile(values, [0.02, 0.98])
    surface.add_scalar_quantity(name, values, enabled=True, cmap="viridis", vminmax=(float(low), float(high)))
    centre, extent = (V.max(axis=0) + V.min(axis=0)) / 2, np.linalg.norm(np.ptp(V, axis=0))
    ps.look_at(centre + extent * np.array([0.45, 0.35, 0.8]), centre)
    ps.screenshot(path, transparent_bg=False)
