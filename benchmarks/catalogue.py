"""The benchmarks by name; each is a file of its own here, with a `Benchmark` named ``BENCHMARK``."""

from __future__ import annotations

import importlib
import shlex

from .records import Benchmark

BENCHMARKS = (
    "sparse_random",
    "sparse_sums",
    "sparse_powers",
    "sparse_dense",
    "matrix_times_vector",
    "cotan",
    "dual_laplacian",
    "ways_of_writing",
    "existing_code",
    "loops",
    "steps",
    "stencils",
    "arap",
    "cloth_system",
    "cloth_hessian",
    "symmetric_dirichlet",
    "operators",
    "ablation",
    "preparation",
    "scaling",
    "limits",
)  # in the order of the report


def benchmark_of(name: str) -> Benchmark:
    """The record of a benchmark."""
    return importlib.import_module(f"{__package__}.{name}").BENCHMARK


def commands(which: str) -> list[list[str]]:
    """Words after ``python -m benchmarks`` of every run of the "full" or the "small" set."""
    return [[name, *shlex.split(words)] for name in BENCHMARKS for words in getattr(benchmark_of(name), which)]
