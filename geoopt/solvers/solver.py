"""`Solver`: what all of them do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..arrays import Array


class Solver(ABC):
    """How systems with one sparsity pattern are solved."""

    name: str
    iterations = 0  # of the last solve, where there are any

    @abstractmethod
    def analyse(self, A: Any) -> None:
        """Prepare what depends on the pattern of A alone."""

    @abstractmethod
    def factor(self, A: Any) -> None:
        """Prepare to solve with the values of A. Raises SolverError where A is not positive definite."""

    @abstractmethod
    def solve(self, b: Array) -> Array:
        """The solution of A x = b; b : (n,) or (n, k)."""
