"""OBJ and OFF files: lines of numbers.

Read here, since polygons must stay polygons until they are cut, and no library that was tried reads them all: trimesh,
libigl and meshio cut concave polygons into fans or refuse them, and read faces that count backwards, colours in OFF
files or cut-off files wrongly without a word.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np

from geoopt.errors import MeshError

from .polygons import Polygons


def read_obj(content: bytes) -> Polygons:
    """Positions and faces of Wavefront's files; texture coordinates, normals, lines, points and groups stay out."""
    content = re.sub(rb"\\[ \t]*\n", b" ", with_newlines(content))
    lines = [line.split(b"#", 1)[0].strip() for line in content.split(b"\n")]
    kinds = [line[:1] if line[1:2] in b" \t" and len(line) > 1 else b"" for line in lines]
    of_vertices = [line[1:] for line, kind in zip(lines, kinds, strict=True) if kind == b"v"]
    of_faces = [line[1:] for line, kind in zip(lines, kinds, strict=True) if kind == b"f"]
    V = _positions(of_vertices)
    table = numbers_on_lines(_without_slashes(of_faces), np.int64, "face")
    corners = table.values
    if (corners == 0).any():
        bad = table.row_of(int(np.argmin(corners != 0)))
        raise MeshError(f"face {bad} has index 0, but OBJ counts from 1: {_shown(of_faces[bad])}")
    if (corners < 0).any():
        is_vertex = np.array([kind == b"v" for kind in kinds])
        before = np.cumsum(is_vertex)[np.array([kind == b"f" for kind in kinds])]
        corners = np.where(corners < 0, np.repeat(before, table.sizes) + corners + 1, corners)
    _refuse_few_corners(table.sizes, of_faces)
    return Polygons(V, corners - 1, table.sizes)


def read_off(content: bytes) -> Polygons:
    """Positions and faces of OFF, COFF, NOFF and their kin, with the header or without; colours are not read."""
    lines = [line.split(b"#", 1)[0].strip() for line in with_newlines(content).split(b"\n")]
    lines = [line for line in lines if line]
    header = re.match(rb"(ST)?C?N?OFF(?=\s|$)", lines[0], re.IGNORECASE) if lines else None
    if header is not None:
        lines = [rest, *lines[1:]] if (rest := lines[0][header.end() :].strip()) else lines[1:]
    if lines and (b"OFF" in lines[0].upper() or b"BINARY" in lines[0].upper()):
        raise MeshError(f"this kind of OFF is not supported: {_shown(lines[0])}; write it as text, in three dimensions")
    counts = re.match(rb"(\d+)\s+(\d+)(\s+\d+)?$", lines[0]) if lines else None
    if counts is None:
        raise MeshError("is no OFF file: it has no line with the numbers of vertices and faces")
    n, m = int(counts[1]), int(counts[2])
    if len(lines) - 1 != n + m:
        there = f"{min(n, len(lines) - 1)} and {max(0, len(lines) - 1 - n)}"
        raise MeshError(f"the header promises {n} vertices and {m} faces, the file has {there}")
    V = _positions(lines[1 : 1 + n])
    of_faces = lines[1 + n :]
    table = numbers_on_lines([re.sub(rb"\s\S*[.eE].*", b"", line) for line in of_faces], np.int64, "face")
    sizes = table.values[table.begins]
    if (sizes >= table.sizes).any() or (sizes < 0).any():
        bad = int(np.argmax((sizes >= table.sizes) | (sizes < 0)))
        raise MeshError(f"face {bad} has not the corners that it promises: {_shown(of_faces[bad])}")
    _refuse_few_corners(sizes, of_faces)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Polygons(V, table.values[np.repeat(table.begins, sizes) + 1 + within], sizes)


def with_newlines(content: bytes) -> bytes:
    """Without a byte-order mark, and with one kind of ends of lines."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.decode("utf-16", errors="replace").encode()
    return content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _without_slashes(faces: list[bytes]) -> list[bytes]:
    """Only the vertices of corners ``vertex/texture/normal``."""
    text = b"\n".join(faces)
    if b"/" not in text:
        return faces
    for number, face in enumerate(faces):
        if re.search(rb"(^|\s)/", face):
            raise MeshError(f"face {number} has a corner without a vertex: {_shown(face)}")
    return re.sub(rb"/[^\s]*", b"", text).split(b"\n")


def _positions(lines: list[bytes]) -> np.ndarray:
    """The first three numbers of each line; z is 0 where there are two."""
    table = numbers_on_lines(lines, np.float64, "vertex")
    few = table.sizes < 2
    if few.any():
        bad = int(np.argmax(few))
        raise MeshError(f"vertex {bad} has no position: {_shown(lines[bad])}")
    places = table.begins[:, None] + np.arange(3)
    has = np.arange(3) < table.sizes[:, None]
    return np.where(has, table.values[np.where(has, places, 0)], 0.0)


@dataclass(frozen=True)
class Table:
    """Rows of numbers, one after another. values : (k,);  sizes : (rows,) numbers of each row"""

    values: np.ndarray
    sizes: np.ndarray

    @property
    def begins(self) -> np.ndarray:
        return np.cumsum(self.sizes) - self.sizes

    def row_of(self, place: int) -> int:
        return int(np.searchsorted(np.cumsum(self.sizes), place, side="right"))


def numbers_on_lines(lines: list[bytes], dtype: type, what: str) -> Table:
    """The numbers on lines. what : they are of, for errors"""
    text = np.frombuffer(b"\n".join([*lines, b""]), np.uint8)
    is_gap = text <= ord(" ")
    begins = ~is_gap
    begins[1:] &= is_gap[:-1]
    seen = np.cumsum(begins, dtype=np.int32 if len(text) < 2**31 else np.int64)[text == ord("\n")]
    sizes = np.diff(seen, prepend=0).astype(np.int64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what is no number
            values = np.fromstring(b" ".join(lines), dtype, sep=" ") if lines else np.zeros(0, dtype)
    except (DeprecationWarning, ValueError):
        values = None
    if values is None or len(values) != sizes.sum():
        bad = next((i for i, line in enumerate(lines) if not _are_numbers(line, dtype)), 0)
        raise MeshError(f"{what} {bad} is not made of numbers: {_shown(lines[bad])}")
    return Table(values, sizes)


def _are_numbers(line: bytes, dtype: type) -> bool:
    try:
        np.array(line.split()).astype(dtype)
    except (ValueError, OverflowError):
        return False
    return True


def _refuse_few_corners(sizes: np.ndarray, lines: list[bytes]) -> None:
    if (sizes < 3).any():
        bad = int(np.argmax(sizes < 3))
        more = f" (and {int((sizes < 3).sum()) - 1} more)" if (sizes < 3).sum() > 1 else ""
        raise MeshError(f"face {bad} has fewer than three corners: {_shown(lines[bad])}{more}; leave such faces out")


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
