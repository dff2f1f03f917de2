"""What a program asks of the device that it runs on; `CpuMachine`, `CudaMachine`, `HostedCudaMachine`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..graph.phased import Phases
from ..grid import Grid
from ..plan import Plan, Schedule
from ..signature import Argument


class Memory(Protocol):
    """dtype : of a program's arithmetic"""

    dtype: np.dtype

    def memory(self, size: int, inputs: list[Array]) -> Array:
        """Memory for so many numbers, (n,), that no result and no running call uses; of the inputs' kind."""
        ...


class Machine(Memory, Protocol):
    """Code and memory of one program on one device.

    plans : what it runs, a plan for each different phase; on the CPU, their tables are those that kernels read
    output_shapes : of the whole program
    sources : the generated code by kind, first what the device compiles
    traits : counts that say how it runs, such as lanes and threads
    code : what the sources are compiled to, by its name in the cache
    device : its name
    """

    plans: tuple[Plan, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    sources: dict[str, Callable[[], str]]
    traits: dict[str, int]
    code: dict[str, bytes]
    device: str

    @property
    def solves(self) -> tuple[dict[str, Any], ...]:
        """Counts of each linear system that is solved."""
        ...

    @property
    def records(self) -> tuple[Schedule | Grid, ...]:
        """What it was made of, one for each different phase."""
        ...

    @property
    def phases(self) -> Phases | None:
        """Where it solves linear systems or runs loops as often as values decide, how phases follow each other."""
        ...

    def array(self, argument: Argument, value: Any) -> Array:
        """A variable's value as an array, without a copy where it is one; of a sparse matrix, its values."""
        ...

    def flat(self, array: Array) -> Array:
        """The entries as kernels read them, (n,), without a copy where they are like that."""
        ...

    def output(self, number: int, inputs: list[Array]) -> Array:
        """Memory for one output, (n,), that no result and no running call uses; of the inputs' kind."""
        ...

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Compute the outputs from the inputs, all flat."""
        ...

    def run_batch(self, size: int, inputs: list[Array], outputs: list[Array]) -> None:
        """Compute the outputs of so many items. inputs : (size, n), or (n,) where all items have the same;
        outputs : (size, n) as `batch.memory_of_items` gives them, or of other memory"""
        ...

    def matrix(self, pattern: Any, values: Array) -> Any:
        """The sparse matrix with these values. pattern : one of SciPy's without values"""
        ...
