"""Object code on disk, found by the content that made it. Safe to delete at any time.

What is run must have been written by the same user: a folder or a file that others may write to is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import platformdirs

DIGEST = 20  # bytes before each content that tell whether it is whole, and that of its key
LARGEST = 1 << 28  # bytes of a file that is read
MOST = 1 << 30  # bytes of all files in a folder, where GEOOPT_CACHE_MB says nothing; the least recently used go
HOUR = 3600  # seconds after which a file that was not finished never will be
UNFINISHED = "unfinished-"
STORED = re.compile(rf"[0-9a-f]{{40}}|{UNFINISHED}.*")  # names of files
OTHERS = stat.S_IWGRP | stat.S_IWOTH
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for a writer


def programs() -> Path:
    """The folder of programs: ``$GEOOPT_CACHE_DIR``, or one in the user's cache directory."""
    chosen = os.environ.get("GEOOPT_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("geoopt", appauthor=False))


def loops() -> Path:
    """The folder of geoopt's own loops, which all programs need: beside that of programs, and useful without it."""
    return programs().with_name(f"{programs().name}-loops")


def most() -> int:
    """The bytes that the files of a folder may have together: ``$GEOOPT_CACHE_MB``, or `MOST`."""
    chosen = os.environ.get("GEOOPT_CACHE_MB", "")
    return int(chosen) << 20 if chosen.isdecimal() else MOST


def load(folder: Path, key: str) -> bytes | None:
    """What was stored under a key, or None; what is damaged, or not a file of this user's, counts as absent."""
    place = folder / key
    if not _is_trusted(folder):
        return None
    try:
        with open(os.open(place, FLAGS), "rb") as f:
            found = os.fstat(f.fileno())
            if not stat.S_ISREG(found.st_mode) or not _is_own(found) or found.st_size > LARGEST:
                return None
            stored = f.read(LARGEST)
    except OSError:
        return None
    digest, content = stored[:DIGEST], stored[DIGEST:]
    if digest != _digest(key, content):
        return None
    with contextlib.suppress(OSError):
        os.utime(place)  # it was used now
    return content


def store(folder: Path, key: str, content: bytes) -> None:
    """Keep content under a key. A cache that cannot be written is no error: it only saves time."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_trusted(folder):
            _write(folder, key, _digest(key, content) + content)
            _shrink(folder, len(content))


def obtained(folder: Path, key: str, make: Callable[[], bytes]) -> tuple[bytes, bool]:
    """What is under a key, or is made, and is there from then on; and whether it was there."""
    found = load(folder, key)
    if found is not None:
        return found, True
    content = make()
    store(folder, key, content)
    return content, False


def key(*parts: str) -> str:
    """A file name for content made from some texts."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST, key=key.encode()).digest()


def _write(folder: Path, key: str, stored: bytes) -> None:
    """As a whole or not at all; files of `tempfile` are their user's alone."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=UNFINISHED, delete=False) as f:
        try:
            f.write(stored)
            f.close()
            os.replace(f.name, folder / key)
        except BaseException:  # a full disk, or an interrupt
            f.close()
            os.unlink(f.name)
            raise


def _is_own(found: os.stat_result) -> bool:
    """Whether nobody but this user may have written something."""
    return found.st_uid == getattr(os, "geteuid", lambda: found.st_uid)() and not found.st_mode & OTHERS


def _is_trusted(folder: Path) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    is_own = _is_own(found)
    if not is_own:
        _warn(folder, stat.S_IMODE(found.st_mode), found.st_uid)
    return is_own


@functools.cache
def _warn(folder: Path, mode: int, owner: int) -> None:
    """Once for each folder."""
    why = f"others may write to it (mode {mode:o})" if mode & OTHERS else f"it belongs to another user ({owner})"
    remedy = "make it yours alone (chmod 700), or set GEOOPT_CACHE_DIR to a folder that is"
    warnings.warn(f"geoopt's cache {folder} is not used: {why}; {remedy}", stacklevel=2)


# -- its size ---------------------------------------------------------------------------------------------

_stored: dict[Path, int] = {}  # by folder, the bytes stored since its files were counted


def _shrink(folder: Path, size: int) -> None:
    """Remove what was left unfinished and, where all is too much, the files that were used least recently: half of it.

    Files are counted with the first that a process stores, and then with every tenth part of what there may be.
    size : of what has been stored just now
    """
    limit = most()
    _stored[folder] = _stored.get(folder, limit) + size
    if _stored[folder] < limit / 10:
        return
    _stored[folder] = 0
    files = sorted(_files(folder))
    left = sum(size for _, size, _ in files)
    least = limit / 2 if left > limit else limit
    for used, size, path in files:
        is_leftover = os.path.basename(path).startswith(UNFINISHED) and used < time.time() - HOUR
        if is_leftover or left > least:
            left -= _removed(path, size)


class Contents(NamedTuple):
    """files, bytes : how many there are;  oldest, newest : when files were used last, in seconds since 1970"""

    files: int
    bytes: int
    oldest: float
    newest: float


def contents(folder: Path) -> Contents:
    """What is in a folder; nothing where there is none."""
    try:
        found = sorted(_files(folder))
    except OSError:
        found = []
    times = [used for used, _, _ in found] or [0.0]
    return Contents(len(found), sum(size for _, size, _ in found), times[0], times[-1])


def clear(folder: Path) -> Contents:
    """Remove all that was stored in a folder, and nothing else; gives what that was. Programs in memory run on."""
    try:
        found = list(_files(folder))
    except OSError:
        found = []
    sizes = [_removed(path, size) for _, size, path in found]
    return Contents(len(sizes), sum(sizes), 0.0, 0.0)


def _removed(path: str, size: int) -> int:
    """Removes a file; gives its size, 0 where another process was first."""
    try:
        os.unlink(path)
    except OSError:
        return 0
    return size


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """When each file that was stored was used last, its size and its path."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if STORED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield found.st_mtime, found.st_size, entry.path
