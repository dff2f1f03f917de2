"""What the apps have in common: a mesh that moves frame by frame, with handles that pull it. It draws nothing."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import geoopt
from geoopt.apps import handles as files
from geoopt.apps.handles import Handle
from geoopt.apps.timing import alternate
from geoopt.apps.upright import upward
from geoopt.arrays import Array, on_device, wait
from geoopt.errors import ArgumentError
from geoopt.meshes import check, save
from geoopt.operators import interior_edges
from geoopt.solvers import Solver
from geoopt.timing import Stopwatch

Mesh = tuple[np.ndarray, np.ndarray]
FRAME = 1 / 30  # [s]


@dataclass(frozen=True)
class Frame:
    """What one frame took and what came out. seconds : by part of the work;  measures : by name"""

    seconds: dict[str, float] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)


class Simulation(ABC):
    """A mesh in motion.

    V : (n, 3) rest positions [m];  F : (m, 3) triangles;  positions : (n, 3) of now [m];  time : [s]
    handles : move them by their frames; to add or remove some, call `grab` and `release`
    up : the axis that points upward; "auto" becomes "y" or "z", see `upright.upward`
    device : of its programs; on "cuda" what changes from step to step stays on the GPU, and all arrays above are copies
    """

    compiled: str  # the part of a frame that a program does
    solver_note: str  # which solver, and why
    program: geoopt.Program

    def __init__(self, mesh: Mesh, up: str, device: str = "cpu"):
        V, F = mesh
        check(V, F)
        interior_edges(F)  # refuses what is not a manifold
        self.V, self.F, self.device = np.array(V, float), np.array(F), device
        self.up = upward(self.V, self.F, asked=up)
        self.positions = self.V.copy()
        self.time = 0.0
        self.handles: list[Handle] = []

    @property
    def notes(self) -> list[str]:
        """What is to be said before the first frame, in lines."""
        return [f"solver: {self.solver_note}"]

    @abstractmethod
    def step(self) -> Frame:
        """Go on by one frame, to where the handles pull."""

    @abstractmethod
    def constrain(self) -> None:
        """The handles are others than before: the solver must know."""

    @abstractmethod
    def by_program(self) -> None:
        """Run the program once."""

    @abstractmethod
    def by_numpy(self) -> None:
        """Do once by NumPy what the program does."""

    def on_device(self, value: Any) -> Array:
        """An array or a matrix where the programs' are."""
        return on_device(value, self.device)

    def wait(self) -> None:
        """Wait until the device has done what it was asked for."""
        wait(self.device)

    @contextmanager
    def part(self, watch: Stopwatch, name: str) -> Iterator[None]:
        """Add the seconds of a part of a frame to a watch, until the device is done."""
        with watch.part(name):
            yield
            self.wait()

    def times_faster(self, rounds: int = 3) -> float:
        """How many times faster the program is than NumPy, at the present state."""
        timings = alternate({"program": self.by_program, "NumPy": self.by_numpy}, rounds)
        return timings["program"].times_faster_than(timings["NumPy"])

    def advance(self) -> Frame:
        """Move the handles along their tracks, then `step`; what no part of it took is "other"."""
        start = time.perf_counter()
        self.time += FRAME
        for handle in self.handles:
            if len(handle.track.times) > 1:
                handle.follow(self.time)
        frame = self.step()
        if not frame.seconds:
            return frame
        other = time.perf_counter() - start - sum(frame.seconds.values())
        return replace(frame, seconds=frame.seconds | {"other": other})

    def grab(self, vertices: np.ndarray, name: str = "") -> Handle:
        """Make a handle of vertices (k,) where they are; those of other handles stay theirs.

        Raises ArgumentError for what is no vertex, and where all of them are in handles already.
        """
        vertices = np.unique(vertices)
        if not len(vertices) or not np.issubdtype(vertices.dtype, np.integer):
            raise ArgumentError("a handle needs vertices: give their numbers, at least one")
        if vertices[0] < 0 or vertices[-1] >= len(self.V):
            raise ArgumentError(f"vertices are 0 to {len(self.V) - 1}, not {vertices[0]} to {vertices[-1]}")
        vertices = np.setdiff1d(vertices, self.held)
        if not len(vertices):
            raise ArgumentError("these vertices are in a handle already; release it first")
        handle = Handle(name or f"handle {len(self.handles)}", vertices, self.positions[vertices])
        self.use([*self.handles, handle])
        return handle

    def release(self, handle: Handle) -> None:
        """Let the vertices of a handle go."""
        self.use([h for h in self.handles if h is not handle])

    def use(self, handles: list[Handle]) -> None:
        """Have these handles instead of those there are."""
        before, self.handles = self.handles, handles
        try:
            self.constrain()
        except geoopt.GeooptError:
            self.handles = before
            raise

    def load(self, path: Path) -> None:
        """Have the handles of a script; see `handles.read`."""
        self.use(files.read(path, self.V, self.F))

    def save(self, path: Path) -> None:
        """Keep the handles in a file that `load` reads."""
        files.write(path, self.handles, self.V, self.F)

    def save_mesh(self, path: Path) -> None:
        """Write the mesh as it is now; see `geoopt.meshes.save`."""
        save(path, self.positions, self.F)

    def reset(self) -> None:
        """Go back to the rest shape and to the start of all tracks."""
        self.positions, self.time = self.V.copy(), 0.0
        for handle in self.handles:
            handle.start = self.V[handle.vertices]
            handle.follow(0.0)

    @property
    def held(self) -> np.ndarray:
        """The vertices of all handles (k,), one handle after the other."""
        return np.concatenate([np.zeros(0, np.int64), *(h.vertices for h in self.handles)])

    @property
    def targets(self) -> np.ndarray:
        """Where they are to be (k, 3)."""
        return np.concatenate([np.zeros((0, 3)), *(h.targets for h in self.handles)])


def note(solver: Solver, why: str) -> str:
    """What the panel says of the choice of a solver."""
    return f"{solver.name}: {why}"
