"""The CPU: machine code from LLVM IR by llvmlite, tasks launched by Numba's threads."""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import replace

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config, types
from numba.extending import intrinsic

from ..codegen import TARGETS
from ..codegen.llvm_math import vector_names
from ..codegen.llvm_vectors import Vectors
from ..integers.cores import started
from ..native.object_code import assembly, compiled, host, loaded
from ..options import Options
from ..plan import Schedule
from .host import HostMachine

_PARALLEL = threading.Lock()  # nor may two threads enter Numba's workqueue layer at once
_FORKED: list[bool] = []  # OpenMP's threads do not survive a fork; the child runs serially, with the same results

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.append(True))


@functools.cache
def vector_math() -> frozenset[str]:
    """The vector functions that glibc's libmvec offers to this process and this processor can run."""
    try:
        llvm.load_library_permanently("libmvec.so.1")
    except RuntimeError:
        return frozenset()
    flags = set(host()[1].split(","))
    usable = "b" + ("d" if "+avx2" in flags else "") + ("e" if "+avx512f" in flags else "")
    return frozenset(n for n in vector_names() if n[4] in usable and llvm.address_of_symbol(n))


def vectors(options: Options, dtype: np.dtype) -> Vectors:
    """The vector shape for this machine and these options."""
    return vectors_of(*host(), vector_math(), options, dtype)


def vectors_of(name: str, features: str, math: frozenset[str], options: Options, dtype: np.dtype) -> Vectors:
    """The same for any processor. math : the symbols of the vector functions that are there"""
    flags = set(features.split(","))
    bits = 512 if "+avx512f" in flags else 256 if "+avx" in flags else 128
    lanes = options.lanes or bits // (8 * dtype.itemsize)
    is_zen = name.startswith("znver")  # whole lines are written without being read
    permutes = "+avx2" in flags and lanes * dtype.itemsize == 32
    is_hardware = options.gathers == "hardware"
    return Vectors(lanes, dtype, is_hardware, math, options.has("memory"), not is_zen, permutes)


class CpuMachine(HostMachine):
    """Machine code for a schedule's kernels, compiled or from the cache; the engine keeps it alive."""

    def __init__(self, schedule: Schedule, options: Options, dtype: np.dtype):
        v = vectors(options, dtype)
        module = TARGETS["cpu"](schedule.plan, v)
        code = started(lambda: compiled(module.text, host()))
        super().__init__(schedule.plan, dtype)  # packs the tables
        found, self.was_cached = code.result()
        self.code_bytes = len(found)
        self.traits = {"lanes": v.lanes, "threads": options.worker_count}
        self.sources = {"llvm": lambda: module.text, "asm": lambda: assembly(module.text, host())}
        self._schedule, self._workers = replace(schedule, plan=self.plan), options.worker_count
        self._engine, addresses = loaded(found, host(), max(module.functions, default=-1) + 1)
        # the buffers of all kernels, one kernel's after the other; per kernel, its function and where its buffers begin
        self._buffers = np.array([b for buffers in module.buffers for b in buffers], np.int64)
        ends = np.cumsum([len(buffers) for buffers in module.buffers], dtype=np.int64)
        self._kernels = np.stack([addresses[module.functions], np.append(0, ends)[:-1]], axis=1)

    def _launch(self, buffers: np.ndarray) -> None:
        """On as many of the workers as the machine has."""
        tasks, shares = self._schedule.tasks, self._schedule.shares
        if self._workers == 1 or _FORKED:
            _launch_serial(self._kernels, buffers[self._buffers], tasks)
            return
        with _PARALLEL:
            before = numba.get_num_threads()
            numba.set_num_threads(min(self._workers, config.NUMBA_NUM_THREADS))  # pyright: ignore[reportAttributeAccessIssue]
            try:
                _launch_parallel(self._kernels, buffers[self._buffers], tasks, shares)
            finally:
                numba.set_num_threads(before)


def describe() -> str:
    """The processor, in a line."""
    return f"{host()[0]}, {os.cpu_count()} cores"


@intrinsic
def _call(typingctx, address, buffers, task):
    """Call ``void f(ptr, ptr)`` at an address."""

    def codegen(context, builder, signature, args):
        from llvmlite import ir

        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer])
        function = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(function, [builder.inttoptr(a, pointer) for a in args[1:]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@numba.njit(cache=True, nogil=True)
def _run_range(kernels, buffers, tasks, begin, end):
    for t in range(begin, end):
        function, first = kernels[tasks[t, 0]]
        _call(function, buffers[first:].ctypes.data, tasks[t].ctypes.data)  # pyright: ignore[reportCallIssue]


@numba.njit(cache=True, nogil=True)
def _launch_serial(kernels, buffers, tasks):
    _run_range(kernels, buffers, tasks, 0, len(tasks))


@numba.njit(cache=True, nogil=True, parallel=True)
def _launch_parallel(kernels, buffers, tasks, shares):
    for phase in range(shares.shape[0]):
        for w in numba.prange(shares.shape[1] - 1):
            _run_range(kernels, buffers, tasks, shares[phase, w], shares[phase, w + 1])
