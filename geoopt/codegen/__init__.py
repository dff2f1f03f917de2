"""Backends: each turns a plan, or a grid, into text of its own kind."""

from __future__ import annotations

from collections.abc import Callable

from . import cuda, llvm

TARGETS: dict[str, Callable] = {"cpu": llvm.emit, "cuda": cuda.emit}
