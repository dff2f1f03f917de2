"""Backends: each turns a `plan.Plan` into text of its own kind."""

from __future__ import annotations

from collections.abc import Callable

from . import llvm

TARGETS: dict[str, Callable] = {"cpu": llvm.emit}
