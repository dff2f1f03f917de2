"""Kernels for vectors: the functions of a kernel in the kernel language, one vector lane per member."""

from .kernels import MAIN, Compiled, functions_of

__all__ = ["MAIN", "Compiled", "functions_of"]
