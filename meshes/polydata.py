"""Surfaces in legacy VTK files, ``DATASET POLYDATA``, which meshio refuses."""

from __future__ import annotations

import re

import numpy as np

from geoopt.errors import MeshError

from .polygons import Polygons

_TYPES = {"float": "f4", "double": "f8", "int": "i4", "long": "i8", "vtktypeint64": "i8", "vtktypeint32": "i4"}


def read_polydata(content: bytes) -> Polygons:
    """Polygons and triangle strips, as text or binary, of file versions up to 5; lines and points are not kept."""
    reader = _Reader(content)
    points = reader.section(rb"POINTS")
    if points is None:
        raise MeshError("has no POINTS")
    count, kind = points
    V = reader.numbers(3 * int(count), kind.decode()).astype(np.float64).reshape(-1, 3)
    corners, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for name in (rb"POLYGONS", rb"TRIANGLE_STRIPS"):
        lists = reader.lists(name)
        if lists is not None:
            found, of_each = lists if name == rb"POLYGONS" else _of_strips(*lists)
            corners.append(found)
            sizes.append(of_each)
    return Polygons(V, np.concatenate(corners), np.concatenate(sizes))


class _Reader:
    """Finds sections by their names and reads the numbers after them."""

    def __init__(self, content: bytes):
        self.content = content
        lines = content.split(b"\n", 3)
        self.is_binary = len(lines) > 2 and lines[2].strip().upper() == b"BINARY"
        self.place = 0

    def section(self, name: bytes) -> tuple[bytes, bytes] | None:
        """The two words after the name of a section; reading goes on behind them."""
        found = re.search(rb"^[ \t]*" + name + rb"[ \t]+(\d+)[ \t]+(\w+)[ \t]*\r?\n", self.content, re.M | re.I)
        if found is None:
            return None
        self.place = found.end()
        return found[1], found[2]

    def numbers(self, count: int, kind: str) -> np.ndarray:
        if kind.lower() not in _TYPES:
            raise MeshError(f"numbers of type {kind} are not supported; there are {', '.join(_TYPES)}")
        dtype = np.dtype(">" + _TYPES[kind.lower()])
        left = len(self.content) - self.place
        if count * (dtype.itemsize if self.is_binary else 2) > left + 1:
            raise MeshError(f"{count} numbers are promised where the file has {left} bytes; it may be cut off")
        if self.is_binary:
            found = np.frombuffer(self.content, dtype, count, self.place)
            self.place += found.nbytes
            return found
        words = self.content[self.place :].split(maxsplit=count)
        self.place = len(self.content) - len(words[count]) if len(words) > count else len(self.content)
        try:
            return np.array(words[:count]).astype(dtype)
        except ValueError as error:
            raise MeshError(f"{error}, where {count} numbers are promised") from error

    def lists(self, name: bytes) -> tuple[np.ndarray, np.ndarray] | None:
        """Corners and sizes of a section of lists of vertices."""
        found = self.section(name)
        if found is None:
            return None
        first, second = map(int, found)
        offsets = re.match(rb"\s*OFFSETS[ \t]+(\w+)[ \t]*\r?\n", self.content[self.place : self.place + 80], re.I)
        if offsets is not None:  # of version 5
            self.place += offsets.end()
            bounds = self.numbers(first, offsets[1].decode()).astype(np.int64)
            heading = re.match(
                rb"\s*CONNECTIVITY[ \t]+(\w+)[ \t]*\r?\n", self.content[self.place : self.place + 80], re.I
            )
            if heading is None or bounds[-1:].tolist() != [second]:
                raise MeshError(f"{name.decode()} end elsewhere than their offsets say")
            self.place += heading.end()
            return self.numbers(second, heading[1].decode()).astype(np.int64), np.diff(bounds)
        return _taken_apart(self.numbers(second, "int").astype(np.int64), first, name.decode())


def _taken_apart(numbers: np.ndarray, count: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Corners and sizes from ``size, corners, size, corners, ...``."""
    if count and len(numbers) % count == 0 and (numbers[:: len(numbers) // count] == len(numbers) // count - 1).all():
        size = len(numbers) // count - 1
        return numbers.reshape(count, size + 1)[:, 1:].ravel(), np.full(count, size)
    sizes, is_corner, place = [], np.ones(len(numbers), bool), 0
    for _ in range(count):
        if place >= len(numbers) or numbers[place] < 0:
            raise MeshError(f"{count} {name} are promised, the file has {len(sizes)}")
        is_corner[place] = False
        sizes.append(int(numbers[place]))
        place += sizes[-1] + 1
    if place != len(numbers):
        raise MeshError(f"{name} have {place} numbers where {len(numbers)} are promised")
    return numbers[is_corner], np.array(sizes, np.int64)


def _of_strips(corners: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangles of strips, of which every second turns the other way."""
    triangles = []
    for begin, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        strip = corners[begin : begin + size]
        found = np.stack([strip[:-2], strip[1:-1], strip[2:]], axis=1)
        found[1::2] = found[1::2, [1, 0, 2]]
        triangles.append(found.ravel())
    flat = np.concatenate([np.zeros(0, np.int64), *triangles])
    return flat, np.full(len(flat) // 3, 3)
