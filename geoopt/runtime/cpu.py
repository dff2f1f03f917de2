"""The CPU: machine code from LLVM IR by llvmlite, tasks launched by Numba's threads."""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config, types
from numba.extending import intrinsic

from ..codegen import TARGETS
from ..codegen.llvm_math import vector_names
from ..codegen.llvm_memory import Vectors
from ..options import Options
from ..plan import Plan
from ..schedule import Schedule
from . import cache

_LOCK = threading.Lock()  # llvmlite's compilation is not thread-safe
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
    name, features = host()
    flags = set(features.split(","))
    bits = 512 if "+avx512f" in flags else 256 if "+avx" in flags else 128
    lanes = options.lanes or bits // (8 * dtype.itemsize)
    # measured on AMD's Zen 4 and 5: eight scalar loads beat one gather instruction by 1.4 to 1.8 times
    auto = "+avx512f" in flags and not name.startswith("znver")
    is_hardware = {"auto": auto, "scalar": False, "hardware": True}[options.gathers]
    return Vectors(lanes, dtype, is_hardware, vector_math(), options.has("memory"))


@dataclass(frozen=True, eq=False)
class Machine:
    """Loaded machine code. ``addresses`` : one function per kernel. The engine keeps the code alive."""

    engine: object
    addresses: np.ndarray
    code_bytes: int
    text: str
    was_cached: bool


def assemble(plan: Plan, options: Options, dtype: np.dtype) -> Machine:
    """Compile a plan, or load what was compiled before from the cache."""
    text = TARGETS["cpu"](plan, vectors(options, dtype))
    name, features = host()
    key = cache.key(text, name, features, llvmlite.__version__)
    with _LOCK:
        found = cache.load(key)
        code = found or _compile(text, name, features)
        if found is None:
            cache.store(key, code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(name, features))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(f"k{i}") for i in range(len(plan.kernels))]
    return Machine(engine, np.array(addresses, np.int64), len(code), text, found is not None)


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
def _run_range(addresses, buffers, tasks, begin, end):
    for t in range(begin, end):
        _call(addresses[tasks[t, 0]], buffers.ctypes.data, tasks[t].ctypes.data)  # pyright: ignore[reportCallIssue]


@numba.njit(cache=True, nogil=True)
def _launch_serial(addresses, buffers, tasks):
    _run_range(addresses, buffers, tasks, 0, len(tasks))


@numba.njit(cache=True, nogil=True, parallel=True)
def _launch_parallel(addresses, buffers, tasks, shares):
    for phase in range(shares.shape[0]):
        for w in numba.prange(shares.shape[1] - 1):
            _run_range(addresses, buffers, tasks, shares[phase, w], shares[phase, w + 1])


def launch(machine: Machine, buffers: np.ndarray, schedule: Schedule, workers: int) -> None:
    """Run a schedule for ``workers`` threads, on as many as the machine has. buffers : (k,) int64 addresses"""
    if workers == 1 or _FORKED:
        _launch_serial(machine.addresses, buffers, schedule.tasks)
        return
    with _PARALLEL:
        before = numba.get_num_threads()
        numba.set_num_threads(min(workers, config.NUMBA_NUM_THREADS))  # pyright: ignore[reportAttributeAccessIssue]
        try:
            _launch_parallel(machine.addresses, buffers, schedule.tasks, schedule.shares)
        finally:
            numba.set_num_threads(before)
