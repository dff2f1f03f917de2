"""What is measured on a GPU: works of the benchmarks, and programs so small that Python's time is all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .catalogue import benchmark_of
from .records import Setting, Work
from .works import chosen_works, mesh_of


@dataclass(frozen=True)
class Case:
    """benchmark, work : of the catalogue; empty for a function of ours;  share : of the vertices that are asked for

    most : of the vertices of a small program, of which the time that Python is busy with a call matters
    """

    benchmark: str
    work: str
    share: float = 1.0
    most: int = 0

    @property
    def peers(self) -> tuple[str, ...]:
        """Those of its benchmark."""
        return benchmark_of(self.benchmark).peers if self.benchmark else ("numpy",)

    def work_of(self, vertices: int, dtype: Any) -> tuple[Work, int]:
        """The work on a mesh, and its number of vertices."""
        count = min(vertices, self.most) if self.most else int(self.share * vertices)
        if not self.benchmark:
            x = np.linspace(-1, 1, 3 * count, dtype=dtype).reshape(-1, 3)
            return Work("elementwise", elementwise, (x,), (x,)), count
        benchmark = benchmark_of(self.benchmark)
        setting = Setting(vertices=count, works=(self.work,), dtype=dtype)
        mesh = mesh_of(benchmark, setting)
        [make] = chosen_works(benchmark, mesh, setting).values()
        return make(), len(mesh[0])


def elementwise(x: Any) -> Any:
    return np.sqrt(x * x + 1)


# in the order in which they begin: what takes longest to prepare first
CASES = {
    "cloth": Case("cloth_system", "A and b", 0.5),
    "cotan": Case("cotan", "L and M"),
    "ARAP": Case("arap", "b"),
    "symmetric Dirichlet": Case("symmetric_dirichlet", "assembled", 0.5),
    "(A + B)(A B + C)": Case("sparse_random", "(A + B)(A B + C)", 0.03),
    "dual Laplacian": Case("dual_laplacian", "L and M", 0.1),
    "L³": Case("sparse_powers", "A³", 0.2),
    "L²": Case("sparse_powers", "A²", 0.2),
    "A B C": Case("sparse_random", "A B C", 0.1),
    "(αA + B)ᵀ(βBᵀ + C)": Case("sparse_random", "(αA + B)ᵀ(βBᵀ + C)", 0.1),
    "small cotan": Case("cotan", "L and M", most=2000),
    "elementwise": Case("", "", most=1000),
}
