"""Files that the command line writes: nothing is overwritten unasked, and none is left half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
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
            raise ArgumentError(f"{path} exists; give another name or --force")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file completely or not at all."""
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the name that users know
        raise
