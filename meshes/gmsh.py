"""Gmsh's MSH files, versions 2, 4.0 and 4.1, as text and binary.

Read here: meshio believes what files say of counts and node numbers, and fills 7 GB from a damaged file of 4 kB.
Source: Gmsh reference manual, "MSH file format".
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from geoopt.errors import MeshError

from .text import numbers_on_lines, with_newlines

# by number of the kind: its name and how many nodes it has; corners come first
_KINDS = {
    **{1: ("line", 2), 2: ("triangle", 3), 3: ("quad", 4), 4: ("tetra", 4), 5: ("hexahedron", 8), 6: ("wedge", 6)},
    **{7: ("pyramid", 5), 8: ("line3", 3), 9: ("triangle6", 6), 10: ("quad9", 9), 11: ("tetra10", 10)},
    **{12: ("hexahedron27", 27), 13: ("wedge18", 18), 14: ("pyramid14", 14), 15: ("vertex", 1), 16: ("quad8", 8)},
    **{17: ("hexahedron20", 20), 18: ("wedge15", 15), 19: ("pyramid13", 13), 21: ("triangle10", 10)},
    **{23: ("triangle15", 15), 25: ("triangle21", 21), 26: ("line4", 4), 27: ("line5", 5), 28: ("line6", 6)},
    **{29: ("tetra20", 20), 30: ("tetra35", 35), 31: ("tetra56", 56), 36: ("quad16", 16), 37: ("quad25", 25)},
}
Blocks = list[tuple[str, np.ndarray]]  # cells of one kind, in the order of the file


def read_gmsh(content: bytes) -> tuple[np.ndarray, Blocks]:
    """Positions (n, 3), and nodes (m, nodes of the kind) of each block of elements."""
    heading = re.search(rb"\$MeshFormat\s+(\d+)(?:\.(\d+))?\s+([01])\s+(\d+)[ \t]*\r?\n", content)
    if heading is None:
        raise MeshError("has no $MeshFormat")
    major, minor = int(heading[1]), int(heading[2] or 0)
    if major not in (2, 4) or heading[4] != b"8":
        raise MeshError(
            f"is of version {major}.{minor} with numbers of {int(heading[4])} bytes; give version 2, 4.0 or 4.1"
        )
    is_text = heading[3] == b"0"
    order = "<" if is_text or content[heading.end() : heading.end() + 4] == b"\x01\0\0\0" else ">"
    nodes, elements = (_section(content, name, is_text) for name in (b"$Nodes", b"$Elements"))
    if major == 2:
        tags, V = (_nodes_2_text if is_text else _nodes_2)(nodes, order)
        blocks = (_elements_2_text if is_text else _elements_2)(elements, order)
    else:
        tags, V = _nodes_4(_Numbers(nodes, is_text, order, minor))
        blocks = _elements_4(_Numbers(elements, is_text, order, minor))
    return V, _with_rows(tags, blocks)


def _section(content: bytes, name: bytes, is_text: bool) -> bytes:
    """What is between a heading and its end."""
    begin = re.search(re.escape(name) + rb"[ \t]*\r?\n", content)
    end = content.find(name.replace(b"$", b"$End"), begin.end() if begin is not None else 0)
    if begin is None or end < 0:
        raise MeshError(f"has no {name.decode()} with an end; it may be cut off")
    section = content[begin.end() : end]
    return with_newlines(section) if is_text else section


def _counted(section: bytes) -> tuple[int, bytes]:
    """The number in the first line of a section, and the rest."""
    first, _, rest = section.partition(b"\n")
    if not first.strip().isdigit():
        raise MeshError(f"a section begins with {first[:30]!r}, where a number is to be")
    return int(first), rest


def _expect(what: str, promised: int, found: int) -> None:
    if promised != found:
        raise MeshError(f"promises {promised} {what}, and has {found}")


def _nodes_2_text(section: bytes, _: str) -> tuple[np.ndarray, np.ndarray]:
    count, rest = _counted(section)
    rows = numbers_on_lines(_lines(rest), np.float64, "node")
    _expect("nodes", count, len(rows.sizes))
    if (rows.sizes != 4).any():
        raise MeshError(f"node {int(np.argmax(rows.sizes != 4))} is not one number and three coordinates")
    table = rows.values.reshape(-1, 4)
    return table[:, 0].astype(np.int64), table[:, 1:]


def _nodes_2(section: bytes, order: str) -> tuple[np.ndarray, np.ndarray]:
    count, rest = _counted(section)
    row = np.dtype([("tag", order + "i4"), ("position", order + "f8", 3)])
    _expect("nodes", count, len(rest) // row.itemsize)
    table = np.frombuffer(rest, row, count)
    return table["tag"].astype(np.int64), table["position"].astype(np.float64)


def _elements_2_text(section: bytes, _: str) -> Blocks:
    """Each line: number, kind, how many tags, tags, nodes."""
    count, rest = _counted(section)
    rows = numbers_on_lines(_lines(rest), np.int64, "element")
    _expect("elements", count, len(rows.sizes))
    if (rows.sizes < 4).any():
        raise MeshError(f"element {int(np.argmax(rows.sizes < 4))} is cut off")
    kinds, tags = rows.values[rows.begins + 1], rows.values[rows.begins + 2]
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(kinds)) + 1, [len(kinds)]]) if count else np.zeros(1, int)
    blocks = []
    for low, high in itertools.pairwise(bounds):
        name, nodes = _kind(int(kinds[low]))
        sizes = rows.sizes[low:high]
        if (sizes != 3 + tags[low:high] + nodes).any():
            raise MeshError(
                f"element {low + int(np.argmax(sizes != 3 + tags[low:high] + nodes))} has not {nodes} nodes"
            )
        ends = (rows.begins + rows.sizes)[low:high]
        blocks.append((name, rows.values[ends[:, None] - nodes + np.arange(nodes)]))
    return blocks


def _elements_2(section: bytes, order: str) -> Blocks:
    """Blocks: kind, how many, how many tags; of each element its number, tags, nodes."""
    count, rest = _counted(section)
    numbers, blocks, done = _Numbers(rest, False, order, 0), [], 0
    while done < count:
        kind, found, tags = numbers.take("int", 3).tolist()
        name, nodes = _kind(int(kind))
        if found <= 0 or tags < 0:
            raise MeshError(f"a block of elements has {found} with {tags} tags")
        blocks.append((name, numbers.take("int", found * (1 + tags + nodes)).reshape(found, -1)[:, 1 + tags :]))
        done += found
    _expect("elements", count, done)
    return blocks


class _Numbers:
    """Numbers one after another. In text all are alike; in binary there are those of C."""

    def __init__(self, section: bytes, is_text: bool, order: str, minor: int):
        self.is_text, self.minor, self.place = is_text, minor, 0
        self.types = {"int": np.dtype(order + "i4"), "size": np.dtype(order + "u8"), "double": np.dtype(order + "f8")}
        self.content: Any = numbers_on_lines(_lines(section), np.float64, "line").values if is_text else section

    def take(self, kind: str, count: int) -> np.ndarray:
        left = len(self.content) - self.place
        size = 1 if self.is_text else self.types[kind].itemsize
        if not 0 <= count * size <= left:
            raise MeshError(f"{count} numbers are promised where there are {left // size}; it may be cut off")
        begin, self.place = self.place, self.place + count * size
        if self.is_text:
            return self.content[begin : self.place].astype(np.float64 if kind == "double" else np.int64)
        found = np.frombuffer(self.content, self.types[kind], count, begin)
        return found.astype(np.float64 if kind == "double" else np.int64)

    def take_rows(self, kinds: list[tuple[str, int]], count: int) -> list[np.ndarray]:
        """Rows that have numbers of several kinds: an array (count, numbers) for each kind."""
        if self.is_text:
            rows = self.take("double", count * sum(n for _, n in kinds)).reshape(count, -1)
            return np.split(rows, np.cumsum([n for _, n in kinds])[:-1], axis=1)
        row = np.dtype([(f"{i}", self.types[kind], (n,)) for i, (kind, n) in enumerate(kinds)])
        left = (len(self.content) - self.place) // row.itemsize
        if not 0 <= count <= left:
            raise MeshError(f"{count} rows are promised where there are {left}; it may be cut off")
        rows = np.frombuffer(self.content, row, count, self.place)
        self.place += rows.nbytes
        return [rows[name] for name in row.names or ()]


def _nodes_4(numbers: _Numbers) -> tuple[np.ndarray, np.ndarray]:
    blocks, total = numbers.take("size", 4 if numbers.minor else 2)[:2].tolist()
    tags, positions = [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for _ in range(blocks):
        entity = numbers.take("int", 3).tolist()
        [count] = numbers.take("size", 1).tolist()
        coordinates = 3 + (entity[0 if numbers.minor else 1] if entity[2] else 0)
        if not 3 <= coordinates <= 6:
            raise MeshError(f"nodes of an entity of dimension {coordinates - 3}")
        if numbers.minor:
            tags.append(numbers.take("size", count))
            positions.append(numbers.take("double", count * coordinates).reshape(count, -1)[:, :3])
        else:
            tag, position = numbers.take_rows([("int", 1), ("double", coordinates)], count)
            tags.append(tag[:, 0].astype(np.int64))
            positions.append(position[:, :3].astype(np.float64))
    _expect("nodes", total, sum(map(len, tags)))
    return np.concatenate(tags), np.concatenate(positions)


def _elements_4(numbers: _Numbers) -> Blocks:
    blocks, total = numbers.take("size", 4 if numbers.minor else 2)[:2].tolist()
    found: Blocks = []
    for _ in range(blocks):
        name, nodes = _kind(int(numbers.take("int", 3)[2]))
        [count] = numbers.take("size", 1).tolist()
        rows = numbers.take("size" if numbers.minor else "int", count * (1 + nodes)).reshape(count, 1 + nodes)
        found.append((name, rows[:, 1:]))
    _expect("elements", total, sum(len(rows) for _, rows in found))
    return found


def _with_rows(tags: np.ndarray, blocks: Blocks) -> Blocks:
    """Node numbers of the file as rows of its positions."""
    order = np.argsort(tags, kind="stable")
    ordered = tags[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise MeshError(f"node {int(ordered[1:][ordered[1:] == ordered[:-1]][0])} is there twice")
    found = []
    for name, nodes in blocks:
        place = np.minimum(np.searchsorted(ordered, nodes), max(len(tags) - 1, 0))
        missing = ordered[place] != nodes if len(tags) else np.ones(nodes.shape, bool)
        if missing.any():
            raise MeshError(f"an element of kind {name} has node {int(nodes[missing][0])}, which there is not")
        found.append((name, order[place]))
    return found


def _kind(number: int) -> tuple[str, int]:
    if number not in _KINDS:
        raise MeshError(f"elements of kind {number} are not known")
    return _KINDS[number]


def _lines(section: bytes) -> list[bytes]:
    return [line for line in section.split(b"\n") if line.strip()]
