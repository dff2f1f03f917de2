"""`BatchedMachine`: the items of a batch, computed by the machine of a program for one of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import Array
from ..codegen.simd.prefetch import LINE
from ..errors import ArgumentError
from ..signature import Argument
from .machine import Machine, Memory


def memory_of_items(machine: Memory, items: int, size: int, inputs: list[Array]) -> Array:
    """Memory of a machine for so many numbers of each item, (items, size), that each begin with a line."""
    itemsize = machine.dtype.itemsize
    whole_lines = -(-size * itemsize // LINE) * LINE // itemsize
    return machine.memory(items * whole_lines, inputs).reshape(items, whole_lines)[:, :size]


def checked_size(size: Any) -> int:
    """How many items a batch has; ArgumentError where that is no positive whole number."""
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
        raise ArgumentError(f"batched(size={size!r}): use a positive whole number")
    return int(size)


class BatchedMachine:
    """A `Machine` whose outputs, and some of its inputs, have an axis for the items in front of their own.

    is_shared : of each variable, whether all items have the same
    """

    def __init__(self, machine: Machine, size: int, is_shared: tuple[bool, ...]):
        self.machine, self.size, self.is_shared = machine, size, is_shared
        self.device, self.dtype = machine.device, machine.dtype
        self.plans, self.sources, self.matrix = machine.plans, machine.sources, machine.matrix
        self.traits = {**machine.traits, "items": size}
        self.output_shapes = tuple((size, *shape) for shape in machine.output_shapes)
        self.code, self.solves = machine.code, machine.solves
        self.records, self.phases = machine.records, machine.phases

    def array(self, argument: Argument, value: Any) -> Array:
        if argument.pattern is None or argument.shape == argument.pattern.data.shape:
            return self.machine.array(argument, value)
        if not isinstance(value, list | tuple) or len(value) != self.size:
            raise ArgumentError(f"variable {argument.name!r}: give a list of {self.size} sparse matrices, one per item")
        return np.stack([self.machine.array(argument, one) for one in value])

    def flat(self, array: Array) -> Array:
        return self.machine.flat(array)

    def memory(self, size: int, inputs: list[Array]) -> Array:
        return self.machine.memory(size, inputs)

    def output(self, number: int, inputs: list[Array]) -> Array:
        return memory_of_items(self.machine, self.size, math.prod(self.output_shapes[number][1:]), inputs)

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        given = [x if shared else x.reshape(self.size, -1) for x, shared in zip(inputs, self.is_shared, strict=True)]
        self.machine.run_batch(self.size, given, outputs)

    def run_batch(self, size: int, inputs: list[Array], outputs: list[Array]) -> None:
        raise NotImplementedError("a batch of batches")
