"""Printers: each turns a plan, or a grid, into text of its own kind. One is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module


class _Functions(Mapping[str, Callable]):
    """By target, a function of a module of this folder. modules : of the targets"""

    def __init__(self, name: str, **modules: str):
        self.name, self.modules = name, modules

    def __getitem__(self, target: str) -> Callable:
        return getattr(import_module(f".{self.modules[target]}", __package__), self.name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


TARGETS = _Functions("emit", cpu="llvm", cuda="cuda", c="c")
CODE = _Functions("code", cpu="simd", cuda="cuda", c="c")  # the same in the kernel language
