"""Libraries that read mesh files, without what they write to the terminal on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """trimesh logs tracebacks of what it then does without."""
    import trimesh

    log = trimesh.util.log
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
