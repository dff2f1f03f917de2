"""Sparse, symmetric, positive definite systems, solved by geoopt or what is installed: analyse once, factor, solve.

    solver, why = choose("factors")  # the fastest here for systems whose values change at every step
    solver.analyse(A)                # the pattern of A
    solver.factor(A)                 # the values of a matrix with that pattern
    x = solver.solve(b)              # b : (n,) or (n, k)

A is a `scipy.sparse.csr_array` with all its entries, of both triangles, sorted, or, for device "cuda", one of
`cupyx.scipy.sparse`; then b and x are CuPy's. Memory is freed with the object.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ArgumentError
from ..errors import SolverError as SolverError
from . import cudss
from .direct import Cholespy, OnHost, Pardiso, SuperLU
from .gradients import ConjugateGradients
from .gradients import diagonal_blocks as diagonal_blocks
from .multifrontal import Multifrontal
from .solver import Solver as Solver


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@dataclass(frozen=True)
class Kind:
    """A row of `SOLVERS` or `GPU_SOLVERS`.

    module : what must be installed, "" for nothing;  extra : of geoopt, that installs it
    is_usable : whether what the module needs besides is there
    """

    make: type[Solver]
    module: str = ""
    extra: str = ""
    is_usable: Callable[[], bool] = lambda: True

    @property
    def is_installed(self) -> bool:
        return not self.module or (_installed(self.module) and self.is_usable())


SOLVERS = {
    "multifrontal": Kind(Multifrontal),
    "pardiso": Kind(Pardiso, "pypardiso", "mkl"),
    "cholespy": Kind(Cholespy, "cholespy", "cholespy"),
    "superlu": Kind(SuperLU),
    "cg": Kind(ConjugateGradients),
}
# those that take systems on the GPU; the others solve copies of them on the CPU
GPU_SOLVERS = {
    "cudss": Kind(cudss.CuDSS, "nvmath", "cudss", cudss.is_there),
    "cholespy": SOLVERS["cholespy"],
    "cg": SOLVERS["cg"],
}
# what is preferred, and why, for a job that factors at every step and for one that factors once and solves often
OWN = {"multifrontal": "it is built in, and factors new values and solves fastest"}
PREFERENCES = {"factors": OWN, "solves": OWN}
GPU_PREFERENCES = {
    "factors": {
        "cudss": "it factors new values on the GPU without a new analysis",
        "cg": "it runs on the GPU without factors; the extra cudss installs a direct solver",
    },
    "solves": {
        "cholespy": "it solves on the GPU",
        "cudss": "it solves on the GPU",
        "multifrontal": "systems are copied from the GPU; the extra cholespy installs what solves there",
    },
}


def choose(job: str, name: str = "auto", device: str = "cpu") -> tuple[Solver, str]:
    """The solver for a job and why it was chosen.

    job : "factors" where the values change at every step, "solves" where they stay
    name : of `SOLVERS` or, on the GPU, of `GPU_SOLVERS`, too; or "auto"
    device : "cuda" for systems of CuPy's arrays; on any other they are NumPy's
    Raises ArgumentError for an unknown name, one for another device or one that is not installed.
    """
    kinds = SOLVERS | GPU_SOLVERS if device == "cuda" else SOLVERS
    preferences = (GPU_PREFERENCES if device == "cuda" else PREFERENCES)[job]
    if name == "auto":
        name = next(n for n in preferences if kinds[n].is_installed)
        why = preferences[name]
    else:
        why = "it was asked for"
    if name not in kinds:
        what = f"is for device 'cuda', not {device!r}" if name in GPU_SOLVERS else "is unknown"
        raise ArgumentError(f"solver {name!r} {what}; choose from auto, {', '.join(kinds)}")
    kind = kinds[name]
    if not kind.is_installed:
        raise ArgumentError(_lacking(name, kind))
    solver = kind.make()
    return OnHost(solver) if device == "cuda" and name not in GPU_SOLVERS else solver, why


def _lacking(name: str, kind: Kind) -> str:
    if name == "cudss":
        needs = f"nvmath-python and cuDSS {'.'.join(map(str, cudss.VERSION))}"
        return f"solver {name!r} needs {needs}: pip install 'geoopt-compiler[cudss]', for CUDA 13 [cudss13]"
    return f"solver {name!r} needs {kind.module}: pip install 'geoopt-compiler[{kind.extra}]'"
