"""Printers: each turns a plan, or a grid, into text of its own kind."""

from __future__ import annotations

from collections.abc import Callable

from . import c, cuda, llvm, simd

TARGETS: dict[str, Callable] = {"cpu": llvm.emit, "cuda": cuda.emit, "c": c.emit}
CODE: dict[str, Callable] = {"cpu": simd.code, "cuda": cuda.code, "c": c.code}  # the same in the kernel language
