"""Programs whose arrays are NumPy's: how arguments are read, and memory for tables, outputs and intermediates."""

from __future__ import annotations

import contextlib
import mmap
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen.simd.prefetch import AHEAD, LINE
from ..codegen.simd.rows import ROW
from ..grid import Grid
from ..native import address
from ..plan import Schedule
from ..signature import Argument
from ..stages import Context
from ..stored_matrices import with_values
from .batch import memory_of_items
from .patterns import Patterns

LARGE = 1 << 22  # bytes from which on memory is a mapping, in large pages, as NumPy asks for
MOST_FREE = 3  # arrays of each output that are kept for later calls
PADDING = 16 * AHEAD  # bytes after the columns, for kernels look ahead in them


class HostMachine:
    """What all machines that compute in the host's memory share; each adds how it launches its kernels."""

    solves = ()
    phases = None
    matrix = staticmethod(with_values)

    def __init__(self, record: Schedule | Grid, context: Context):
        plan, dtype = record.plan, context.dtype
        self.dtype = dtype
        self._outputs = [Pool(n, dtype) for n in plan.output_sizes]
        self._workspace = Pool(plan.workspace_size, dtype)
        self._patterns = Patterns()
        self._batches: dict[int, tuple[list[int], np.ndarray]] = {}  # by how many items: see `_layout`
        self._pools: dict[int, Pool] = {}  # by size: of all other memory
        # the plan that is kept has the tables that kernels read: they are in memory once
        self.plan = plan if context.is_mapped else replace(plan, tables=tuple(_packed(plan.typed_tables(dtype))))
        self.records = (replace(record, plan=self.plan),)
        self.plans, self.output_shapes = (self.plan,), plan.output_shapes
        # the addresses of a call's buffers, yet without those that each call has for itself
        self._places = np.array([0] * (plan.workspace + 1) + [t.ctypes.data for t in self.plan.tables], np.int64)

    def array(self, argument: Argument, value: Any) -> np.ndarray:
        return np.asarray(value) if argument.pattern is None else self._patterns.values(argument, value)

    def flat(self, array: np.ndarray) -> np.ndarray:
        is_plain = array.dtype == self.dtype and array.flags.c_contiguous
        if is_plain and _is_readable_past(address(array), array.nbytes, array.itemsize):
            return array if array.ndim == 1 else array.reshape(-1)
        copy = self.memory(array.size, [])
        np.copyto(copy.reshape(array.shape), array, casting="unsafe")
        return copy

    def memory(self, size: int, inputs: list[np.ndarray]) -> np.ndarray:
        pool = self._pools.get(size) or self._pools.setdefault(size, Pool(size, self.dtype))
        return pool.take()

    def output(self, number: int, inputs: list[np.ndarray]) -> np.ndarray:
        return self._outputs[number].take()

    def run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        places = [address(a) for a in outputs]
        if any(p % LINE and a.size for p, a in zip(places, outputs, strict=True)):  # kernels expect whole lines
            arrays = [pool.take() for pool in self._outputs]
            self.run(inputs, arrays)
            for given, array in zip(outputs, arrays, strict=True):
                given[:] = array
            return
        self.run_at([*map(address, inputs)], places)

    def fit(self, inputs: Iterable[tuple[int, int]], outputs: Iterable[int]) -> bool:
        """Whether memory is as kernels want it. inputs : the address of each, and how many numbers it has"""
        if any(place % LINE for place in outputs):
            return False
        itemsize = self.dtype.itemsize
        return all(_is_readable_past(place, size * itemsize, itemsize) for place, size in inputs)

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """The same by addresses, which `fit`."""
        workspace, buffers = self._workspace.borrow(), self._places.copy()
        buffers[: self.plan.workspace + 1] = [*inputs, *outputs, address(workspace)]
        self._launch(buffers)
        self._workspace.give_back(workspace)

    def run_batch(self, size: int, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        if any((address(a) | a.strides[0]) % LINE and a.size for a in outputs):
            arrays = [memory_of_items(self, size, a.shape[1], inputs) for a in outputs]
            self.run_batch(size, inputs, arrays)
            for given, array in zip(outputs, arrays, strict=True):
                given[:] = array
            return
        if size not in self._batches:
            self._batches[size] = self._layout(size)
        groups, buffers = self._batches[size]
        workspace = memory_of_items(self, len(groups), self.plan.workspace_size, inputs)
        buffers, items = buffers.copy(), np.arange(size)
        for number, array in enumerate((*inputs, *outputs)):
            buffers[:, number] = address(array) + items * (array.strides[0] if array.ndim > 1 else 0)
        places = address(workspace) + np.arange(len(groups)) * workspace.strides[0]
        buffers[:, self.plan.workspace] = np.repeat(places, groups)
        self._launch_batch(buffers, groups)

    def _layout(self, size: int) -> tuple[list[int], np.ndarray]:
        """The groups of items, and the buffers of each item, yet without those of a call."""
        return self._groups(size), np.tile(self._places, (size, 1))

    def _groups(self, size: int) -> list[int]:
        """How many items of a batch are computed one after the other, in the same workspace, beside other groups."""
        return [size]

    def _launch(self, buffers: np.ndarray) -> None:
        """Run all kernels. buffers : (k,) int64 addresses"""
        raise NotImplementedError

    def _launch_batch(self, buffers: np.ndarray, groups: list[int]) -> None:
        """The same for the items of a batch. buffers : (items, k)"""
        for row in buffers:
            self._launch(row)


def _packed(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays in one block of memory, which the system can back by large pages."""
    starts = np.cumsum([0, *(-(-a.nbytes // LINE) * LINE for a in arrays)])
    block = _aligned(np.zeros, int(starts[-1]) + PADDING, np.dtype(np.uint8))
    packed = [block[s : s + a.nbytes].view(a.dtype) for s, a in zip(starts, arrays, strict=False)]
    for target, array in zip(packed, arrays, strict=True):
        target[:] = array
    return packed


def _aligned(make: Callable[..., np.ndarray], size: int, dtype: np.dtype) -> np.ndarray:
    """An array that begins with a cache line, past which a row can be read. make : np.zeros, or what leaves it unset"""
    block = make(size + LINE // dtype.itemsize + ROW, dtype)
    first = -block.ctypes.data % LINE // dtype.itemsize
    return block[first : first + size]


def _is_readable_past(first: int, nbytes: int, itemsize: int) -> bool:
    """Whether a row that begins with the last number of an array lies in memory that is there: in the same page.

    first : the address of the array
    """
    return -(first + nbytes) % mmap.PAGESIZE >= (ROW - 1) * itemsize


class Pool:
    """Memory for arrays of one size that begin with a cache line, handed out again when nobody refers to them any more.

    So many calls after each other need no new memory. most : of what is free, as many arrays are kept
    """

    def __init__(self, size: int, dtype: np.dtype, most: int = MOST_FREE):
        self.size, self.dtype, self._most = size, dtype, most
        self._free: list[np.ndarray] = []
        self._given: dict[int, _Given] = {}  # by their identity: they must live to tell

    def take(self) -> np.ndarray:
        """An array that no result and no running call uses."""
        memory = self.borrow()
        array = memory.view(np.ndarray)
        given = _Given(array, self._take_back)
        given.memory = memory
        self._given[id(given)] = given
        return array

    def borrow(self) -> np.ndarray:
        """Memory that nobody uses until it is given back; without looking who refers to it."""
        try:
            return self._free.pop()  # of one instruction, so that threads find different ones
        except IndexError:
            return _aligned(_unset, self.size, self.dtype)

    def give_back(self, memory: np.ndarray) -> None:
        if len(self._free) < self._most:
            self._free.append(memory)

    def _take_back(self, given: _Given) -> None:
        """Called where the last reference to an array goes, in any thread and between any two instructions."""
        del self._given[id(given)]
        self.give_back(given.memory)


class _Memory(np.ndarray):
    """Of another type than arrays that are handed out, so that NumPy has views refer to these, not to the memory."""


def _unset(size: int, dtype: np.dtype) -> _Memory:
    """Large ones are mappings of their own, which the system has back at once; what is freed in the heap may stay."""
    if size * dtype.itemsize < LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return _Memory(size, dtype)
    pages = mmap.mmap(-1, size * dtype.itemsize, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # of systems without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return _Memory(size, dtype, buffer=pages)  # type: ignore[arg-type]


class _Given(weakref.ref):
    """Of an array that was handed out, with its memory."""

    __slots__ = ("memory",)
    memory: np.ndarray
