"""Files that are written: nothing is overwritten unasked, and none is left half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import ArgumentError


def refuse_existing(paths: list[Path], force: bool, are_folders: bool = False) -> None:
    """Raise ArgumentError unless files, or folders, may be written. force : also where there are such"""
    for path in paths:
        if path.exists() and path.is_dir() != are_folders:
            raise ArgumentError(f"{path} is {'no' if are_folders else 'a'} folder; give another name")
        if not path.parent.is_dir():
            raise ArgumentError(f"{path}: there is no folder {path.parent}")
        if path.exists() and not force:
            raise ArgumentError(f"{path} exists; give another name or --force (in Python, force=True)")


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A name in the same folder for what is to be a file, which takes its place when all is well: what is there stays
    until then, and nothing is left of what was not finished. Its mode is that of any new file."""
    new = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix="unfinished-", suffix=path.suffix)
        os.close(handle)
        new = Path(name)
        yield new
        new.chmod(0o666 & ~_umask())
        new.replace(path)
    except BaseException as error:
        if new is not None:
            new.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the name that users know
        raise


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file completely or not at all."""
    with beside(path) as new, new.open("wb") as file:
        write(file)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
