"""`Runner`: a program, called with arrays, or with the addresses of arrays of others."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..program import Program
from ..runtime.host import HostMachine


class Runner:
    """A program, called with arrays or with addresses. shapes : of the results"""

    def __init__(self, program: Program, shapes: Sequence[tuple[int, ...]]):
        self.machine, self.dtype, self.shapes = program.machine, program.dtype, tuple(shapes)
        self._sizes = [math.prod(a.shape) for a in program.signature.arguments]
        self._inputs = [self._memory((size,)) for size in self._sizes]
        self._by_address = self.machine if isinstance(self.machine, HostMachine) else None
        self._outputs = [self._memory(shape) for shape in self._flat_shapes(program)]

    def _flat_shapes(self, program: Program) -> list[tuple[int, ...]]:
        """Of the outputs as machines write them: the items of a batch are rows."""
        rows = 0 if program.of_item is None else 1
        return [(*s[:rows], math.prod(s[rows:])) for s in self.machine.output_shapes]

    def _memory(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
        return shape, ctypes.c_char * (math.prod(shape) * self.dtype.itemsize)

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, in fresh arrays."""
        inputs = [self.machine.flat(a) for a in arrays]
        outputs = [self.machine.output(number, inputs) for number in range(len(self._outputs))]
        self.machine.run(inputs, outputs)
        return [a.reshape(shape) for a, shape in zip(outputs, self.shapes, strict=True)]

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """The same in the memory of others: addresses of contiguous arrays of the program's type."""
        machine = self._by_address  # takes less time, which is seen where arrays are small
        if machine and machine.fit(zip(inputs, self._sizes, strict=True), outputs):
            machine.run_at(inputs, outputs)
            return
        self.machine.run(
            [self.machine.flat(a) for a in map(self._array, self._inputs, inputs)],
            list(map(self._array, self._outputs, outputs)),
        )

    def _array(self, memory: tuple[tuple[int, ...], Any], address: int) -> np.ndarray:
        shape, kind = memory
        return np.ndarray(shape, self.dtype, kind.from_address(address))
