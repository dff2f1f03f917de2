"""What a program asks of the device that it runs on; `CpuMachine`, `CudaMachine`, `HostedCudaMachine`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..arrays import Array
from ..plan import Plan
from ..signature import Argument


class Machine(Protocol):
    """Code and memory of one program on one device.

    plan : what it runs; on the CPU, its tables are those that kernels read
    sources : the generated code by kind, first what the device compiles
    traits : counts that say how it runs, such as lanes and threads
    """

    plan: Plan
    sources: dict[str, Callable[[], str]]
    traits: dict[str, int]
    code_bytes: int

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

    def matrix(self, pattern: Any, values: Array) -> Any:
        """The sparse matrix with these values. pattern : one of SciPy's without values"""
        ...
