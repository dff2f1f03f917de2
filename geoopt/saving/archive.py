"""A file of a manifest and arrays: an uncompressed ZIP archive of ``manifest.json`` and ``.npy`` members, which NumPy
and any archiver read. Arrays begin with a line of memory, so that they are used where the file is mapped.

The archive's comment ends with a hash of all bytes before it: what was damaged is found before anything is used.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash

from ..errors import ArgumentError

MANIFEST, REST = "manifest.json", "padding"
LINE = 64  # bytes: where arrays begin
PADDING = 1 << 13  # bytes after the last array, for kernels look ahead in columns
MARK = b"geoopt program, xxh3_128 of all before: "
DIGITS = 32  # of the hash, hexadecimal
HEADER = 30  # bytes of a member of a ZIP archive before its name
MOST_HEADER = 1 << 12  # bytes of the description of an array
EXTRA = b"\x67\x6f"  # what the field is called that moves a member to the next line


class DamagedError(ArgumentError):
    """The content of a file cannot be used; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Archive:
    """manifest : plain data;  arrays : by name;  is_mapped : whether they lie in memory as kernels read tables"""

    manifest: dict[str, Any]
    arrays: dict[str, np.ndarray]
    is_mapped: bool = False


def write(file: BinaryIO, archive: Archive) -> None:
    """Write an archive to a file that can be read again and is empty."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as z:
        z.comment = MARK + b"0" * DIGITS
        z.writestr(_member(MANIFEST), json.dumps(archive.manifest, separators=(",", ":"), allow_nan=False))
        for name, array in archive.arrays.items():
            head = _head(array)
            member = _member(f"{name}.npy")
            member.file_size = len(head) + array.nbytes
            at = file.tell() + HEADER + len(member.filename) + len(EXTRA) + 2
            is_large = member.file_size > zipfile.ZIP64_LIMIT
            member.extra = EXTRA + (count := -(at + 20 * is_large) % LINE).to_bytes(2, "little") + bytes(count)
            with z.open(member, "w", force_zip64=is_large) as target:
                target.write(head)
                target.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
        z.writestr(_member(REST), bytes(PADDING))
    file.seek(0)
    found = xxhash.xxh3_128()
    left = file.seek(0, io.SEEK_END) - DIGITS
    file.seek(0)
    while left:
        found.update(part := file.read(min(left, 1 << 24)))
        left -= len(part)
    file.write(found.hexdigest().encode())


def _member(name: str) -> zipfile.ZipInfo:
    """Dated alike, so that equal programs are equal files."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def _head(array: np.ndarray) -> bytes:
    """What a ``.npy`` file begins with: whole lines."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": array.dtype.newbyteorder("<").str, "fortran_order": False, "shape": array.shape}
    )
    return head.getvalue()


def mapped(path: Path) -> Archive:
    """The archive in a file, whose arrays are read when they are used; processes that map one file share its memory."""
    with path.open("rb") as file:
        if not file.seek(0, io.SEEK_END):
            raise DamagedError("it is empty")
        return _read(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), file, is_mapped=True)


def from_bytes(content: bytes) -> Archive:
    return _read(memoryview(content), io.BytesIO(content), is_mapped=False)


def _read(content: memoryview, file: BinaryIO, is_mapped: bool) -> Archive:
    ending = bytes(content[-len(MARK) - DIGITS :])
    if ending[: len(MARK)] != MARK:
        raise DamagedError("it is no program that geoopt saved, or its end is missing")
    if xxhash.xxh3_128_hexdigest(content[:-DIGITS]).encode() != ending[len(MARK) :]:
        raise DamagedError("its content is not what was saved")
    try:
        with zipfile.ZipFile(file) as z:
            members = {member.filename: member for member in z.infolist()}
            manifest = json.loads(z.read(MANIFEST))
            arrays = {
                name.removesuffix(".npy"): _array(content, member)
                for name, member in members.items()
                if name.endswith(".npy")
            }
            rest = _begin(content, members[REST])
    except (zipfile.BadZipFile, KeyError, ValueError, OverflowError, RecursionError, SyntaxError) as error:
        raise DamagedError(f"it is no archive of a program ({error})") from error
    end = max((a.ctypes.data + a.nbytes for a in arrays.values()), default=0)
    begin = np.frombuffer(content, np.uint8).ctypes.data + rest
    if not isinstance(manifest, dict) or members[REST].file_size != PADDING or end > begin:
        raise DamagedError("it is no archive of a program")
    return Archive(manifest, arrays, is_mapped)


def _begin(content: memoryview, member: zipfile.ZipInfo) -> int:
    """Where the content of a member begins."""
    at = member.header_offset
    name, extra = (int.from_bytes(content[at + k : at + k + 2], "little") for k in (26, 28))
    begin = at + HEADER + name + extra
    is_plain = member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size
    if not is_plain or at < 0 or begin + member.file_size > len(content):
        raise ValueError(f"{member.filename} is compressed, or lies outside of the file")
    return begin


def _array(content: memoryview, member: zipfile.ZipInfo) -> np.ndarray:
    begin = _begin(content, member)
    head = io.BytesIO(content[begin : begin + min(member.file_size, MOST_HEADER)])
    if np.lib.format.read_magic(head) != (1, 0):
        raise ValueError(f"{member.filename} is no array of numbers")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(head, max_header_size=MOST_HEADER)
    begin, size = begin + head.tell(), member.file_size - head.tell()
    if is_fortran or dtype.kind not in "iuf" or dtype.newbyteorder("=").str != dtype.str or begin % LINE:
        raise ValueError(f"{member.filename} is no array of numbers of this machine")
    if any(n < 0 for n in shape) or size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{member.filename} has another size than it says")
    return np.frombuffer(content, dtype, math.prod(shape), begin).reshape(shape)
