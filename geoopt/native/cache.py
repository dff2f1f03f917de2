"""Object code on disk, found by the content that made it. Safe to delete at any time."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import platformdirs

DIGEST = 20  # bytes before each content that tell whether it is whole


def directory() -> Path:
    """``$GEOOPT_CACHE_DIR``, or the user's cache directory."""
    chosen = os.environ.get("GEOOPT_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("geoopt", appauthor=False))


def load(key: str) -> bytes | None:
    """What was stored under a key, or None; what is damaged counts as absent."""
    try:
        stored = (directory() / key).read_bytes()
    except OSError:
        return None
    digest, content = stored[:DIGEST], stored[DIGEST:]
    return content if hashlib.blake2b(content, digest_size=DIGEST).digest() == digest else None


def store(key: str, content: bytes) -> None:
    """Keep content under a key. A cache that cannot be written is no error: it only saves time."""
    try:
        place = directory() / key
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as f:
            f.write(hashlib.blake2b(content, digest_size=DIGEST).digest() + content)
        os.replace(f.name, place)
    except OSError:
        pass


def key(*parts: str) -> str:
    """A file name for content made from some texts."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()
