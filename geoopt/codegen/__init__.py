"""Printers: each turns a plan, or a grid, into text of its own kind."""

from __future__ import annotations

from collections.abc import Callable

from . import c, cuda, llvm

TARGETS: dict[str, Callable] = {"cpu": llvm.emit, "cuda": cuda.emit, "c": c.emit}
CODE: dict[str, Callable] = {"c": c.code, "cuda": cuda.code}  # the same in the kernel language
