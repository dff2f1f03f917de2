"""Handles: sets of vertices that move rigidly, the files they are kept in, and the paths they follow.

A script is a JSON file that fits any mesh, or one that it names:

    {"mesh": {"vertices": 50000, "triangles": 99996, "checksum": 123},
     "handles": [{"name": "top", "inside": [[0, 0, 0.9], [1, 1, 1]],
                  "keys": [{"time": 0}, {"time": 2, "move": [0, 0, 0.2], "turn": [0, 0, 90]}]}]}

"mesh" may be left out. A handle has "vertices" (with "start", their positions, if not those of the mesh), or all
those "inside" a box whose corners are given relative to the bounding box of the mesh (of a flat mesh, the direction in
which it has no extent is measured along its longest). Moves are relative to its
diagonal, turns are rotation vectors in degrees about the middle of the handle, times in seconds; between keys both
change linearly, after the last they stay.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from geoopt.errors import ArgumentError

FLAT = 1e-9  # times the longest side of its bounding box: a side of a flat mesh
SAMPLES = Path(__file__).parent / "scripts"


@dataclass(frozen=True, eq=False)
class Track:
    """Where a handle is over time: times (k,) [s], increasing; moves (k, 3) [m]; turns (k, 3) [degrees]."""

    times: np.ndarray
    moves: np.ndarray
    turns: np.ndarray

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """The move and the turn at a time."""
        move, turn = (np.array([np.interp(time, self.times, c) for c in k.T]) for k in (self.moves, self.turns))
        return move, turn


STILL = Track(np.zeros(1), np.zeros((1, 3)), np.zeros((1, 3)))


@dataclass(eq=False)
class Handle:
    """Vertices that move as one.

    vertices : (k,), each once;  start : (k, 3) where they were;  track : where they go by themselves
    frame : (4, 4) rigid motion that takes positions relative to their middle to where the vertices are to be
    """

    name: str
    vertices: np.ndarray
    start: np.ndarray
    track: Track = STILL
    frame: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.follow(0.0)

    @property
    def middle(self) -> np.ndarray:
        return self.start.mean(axis=0)

    @property
    def targets(self) -> np.ndarray:
        """Where the vertices are to be, (k, 3)."""
        return self._moved(self.frame)

    def targets_at(self, time: float) -> np.ndarray:
        """Where the track takes the vertices by a time, (k, 3)."""
        return self._moved(self._frame_at(time))

    def follow(self, time: float) -> None:
        """Go to where the track is at a time."""
        self.frame = self._frame_at(time)

    def _moved(self, frame: np.ndarray) -> np.ndarray:
        return (self.start - self.middle) @ frame[:3, :3].T + frame[:3, 3]

    def _frame_at(self, time: float) -> np.ndarray:
        move, turn = self.track.at(time)
        frame = np.eye(4)
        frame[:3, :3] = Rotation.from_rotvec(turn, degrees=True).as_matrix()
        frame[:3, 3] = self.middle + move
        return frame


def read(path: Path, V: np.ndarray, F: np.ndarray) -> list[Handle]:
    """The handles of a script for the mesh (V, F).

    Raises ArgumentError, which names the file, for what is no script or is one for another mesh.
    """
    try:
        script = json.loads(path.read_text())
        mesh = script.get("mesh")
        if mesh is not None and mesh != _fingerprint(V, F):
            there, here = (f"{m['vertices']} vertices, {m['triangles']} triangles" for m in (mesh, _fingerprint(V, F)))
            raise ArgumentError(f"was made for another mesh: {there}, not {here} in this order")
        handles = [_handle(entry, V) for entry in script["handles"]]
        _check_disjoint(handles)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(f"{path}: is not a script of handles: {type(error).__name__}: {error}") from error
    return handles


def write(path: Path, handles: list[Handle], V: np.ndarray, F: np.ndarray) -> None:
    """Keep handles, each where it is, as a script for the mesh (V, F) alone."""
    entries = []
    for handle in handles:
        move = (handle.frame[:3, 3] - handle.middle) / _diagonal(V)
        turn = Rotation.from_matrix(handle.frame[:3, :3]).as_rotvec(degrees=True)
        key = {"time": 0, "move": move.tolist(), "turn": turn.tolist()}
        place = {"vertices": handle.vertices.tolist(), "start": handle.start.tolist()}
        entries.append({"name": handle.name, **place, "keys": [key]})
    path.write_text(json.dumps({"mesh": _fingerprint(V, F), "handles": entries}))


def _handle(entry: dict[str, Any], V: np.ndarray) -> Handle:
    name = str(entry["name"])
    _refuse_unknown(f"handle {name!r}", entry, ("name", "inside", "vertices", "start", "keys"))
    vertices = _inside(entry["inside"], V) if "inside" in entry else np.array(entry["vertices"])
    if vertices.ndim != 1 or not vertices.size:
        raise ArgumentError(f"handle {name!r} holds no vertex of this mesh; --script gives other handles")
    if not np.issubdtype(vertices.dtype, np.integer):
        raise ArgumentError(f"handle {name!r}: vertices must be integers, not {vertices.dtype}")
    if vertices.min() < 0 or vertices.max() >= len(V):
        raise ArgumentError(f"handle {name!r} has vertices outside 0..{len(V) - 1}; was it made for another mesh?")
    start = np.array(entry["start"], float) if "start" in entry else V[vertices]
    if start.shape != (len(vertices), 3) or not np.isfinite(start).all():
        raise ArgumentError(f"handle {name!r}: start needs three numbers for each of its {len(vertices)} vertices")
    return Handle(name, vertices, start, _track(name, entry.get("keys", [{"time": 0}]), _diagonal(V)))


def _inside(box: list, V: np.ndarray) -> np.ndarray:
    low, high = np.array(box, float)
    extent = np.ptp(V, axis=0)
    relative = (V - V.min(axis=0)) / np.where(extent > 0, extent, 1)
    is_flat = extent <= FLAT * extent.max()
    relative[:, is_flat] = relative[:, [np.argmax(extent)]]
    return np.flatnonzero(((relative >= low) & (relative <= high)).all(axis=1))


def _track(name: str, keys: list[dict], diagonal: float) -> Track:
    for key in keys:
        _refuse_unknown(f"a key of handle {name!r}", key, ("time", "move", "turn"))
    none = [0, 0, 0]
    times = np.array([k["time"] for k in keys], float)
    moves, turns = (np.array([k.get(what, none) for k in keys], float) for what in ("move", "turn"))
    is_finite = all(np.isfinite(a).all() for a in (times, moves, turns))
    if not times.size or (np.diff(times) <= 0).any() or {moves.shape, turns.shape} != {(len(keys), 3)} or not is_finite:
        raise ArgumentError(f"handle {name!r}: keys need increasing times, and moves and turns of three numbers")
    return Track(times, diagonal * moves, turns)


def _refuse_unknown(what: str, entry: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in entry:
        if name not in known:
            raise ArgumentError(f"{what} has {name!r}, which means nothing; it may have {', '.join(known)}")


def _check_disjoint(handles: list[Handle]) -> None:
    held, count = np.unique(np.concatenate([np.zeros(0, int), *(h.vertices for h in handles)]), return_counts=True)
    if (count > 1).any():
        raise ArgumentError(f"vertex {held[np.argmax(count > 1)]} is in two handles, or twice in one")


def _fingerprint(V: np.ndarray, F: np.ndarray) -> dict[str, int]:
    checksum = zlib.crc32(np.ascontiguousarray(F, "<i8").tobytes())
    return {"vertices": len(V), "triangles": len(F), "checksum": checksum}


def _diagonal(V: np.ndarray) -> float:
    return float(np.linalg.norm(np.ptp(V, axis=0)))
