"""The CPU: machine code from LLVM IR by llvmlite, tasks launched by Numba's threads."""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import replace

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config, types
from numba.extending import intrinsic

from ..codegen import TARGETS
from ..codegen.llvm_math import vector_names
from ..codegen.llvm_vectors import Vectors
from ..integers.cores import started
from ..options import Options
from ..plan import Schedule
from . import cache
from .host import HostMachine

_LOCK = threading.Lock()  # several steps of llvmlite's, each of which locks for itself, belong together
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


@functools.cache
def host() -> tuple[str, str]:
    """The processor's name and its features, in LLVM's words."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_host_cpu_name(), features + ",-prefer-256-bit"


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
        compiled = started(lambda: _compiled(module.text))
        super().__init__(schedule.plan, dtype)  # packs the tables
        code, self.was_cached = compiled.result()
        self.code_bytes = len(code)
        self.traits = {"lanes": v.lanes, "threads": options.worker_count}
        self.sources = {"llvm": lambda: module.text, "asm": lambda: assembly(module.text)}
        self._schedule, self._workers = replace(schedule, plan=self.plan), options.worker_count
        self._engine, addresses = _loaded(code, max(module.functions, default=-1) + 1)
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


def _compiled(text: str) -> tuple[bytes, bool]:
    """Object code, and whether it was in the cache."""
    name, features = host()
    key = cache.key(text, name, features, llvmlite.__version__)
    with _LOCK:
        found = cache.load(key)
        code = found or _compile(text, name, features)
        if found is None:
            cache.store(key, code)
    return code, found is not None


def _loaded(code: bytes, functions: int) -> tuple[object, np.ndarray]:
    """The engine that holds some object code, and the addresses of its functions."""
    with _LOCK:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(*host()))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(f"k{i}") for i in range(functions)]
    return engine, np.array(addresses, np.int64)


def _target_machine(name: str, features: str) -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=3, codemodel="jitdefault")


def _optimised(text: str, name: str, features: str) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = _target_machine(name, features)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = False  # the text is vectors already
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module, machine


def _compile(text: str, name: str, features: str) -> bytes:
    module, machine = _optimised(text, name, features)
    return machine.emit_object(module)


def assembly(text: str) -> str:
    """The host's assembly for a module's text, for reading."""
    with _LOCK:
        module, machine = _optimised(text, *host())
        return machine.emit_assembly(module)


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
