"""The CPU: machine code from LLVM IR by llvmlite, whose tasks threads of a `Crew` share."""

from __future__ import annotations

import functools
import os
import threading

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from numba.core import config

from ..codegen import TARGETS
from ..codegen.llvm_crew import crew
from ..codegen.llvm_math import vector_names
from ..codegen.llvm_vectors import Vectors
from ..integers.cores import started
from ..options import Options
from ..plan import Schedule
from . import cache
from .crew import Crew, Work
from .host import HostMachine, address

_LOCK = threading.Lock()  # several steps of llvmlite's, each of which locks for itself, belong together


@functools.cache
def vector_math() -> frozenset[str]:
    """The vector functions that glibc's libmvec offers to this process and this processor can run."""
    try:
        llvm.load_library_permanently("libmvec.so.1")
    except RuntimeError:
        return frozenset()
    flags = _flags(host()[1])
    usable = "b" + ("d" if "+avx2" in flags else "") + ("e" if "+avx512f" in flags else "")
    return frozenset(n for n in vector_names() if n[4] in usable and llvm.address_of_symbol(n))


@functools.cache
def host() -> tuple[str, str]:
    """The processor's name and its features, in LLVM's words."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_host_cpu_name(), features + ",-prefer-256-bit"


@functools.lru_cache
def _flags(features: str) -> frozenset[str]:
    return frozenset(features.split(","))


def vectors(options: Options, dtype: np.dtype) -> Vectors:
    """The vector shape for this machine and these options."""
    name, features = host()
    flags = _flags(features)
    bits = 512 if "+avx512f" in flags else 256 if "+avx" in flags else 128
    lanes = options.lanes or bits // (8 * dtype.itemsize)
    is_zen = name.startswith("znver")  # whole lines are written without being read
    permutes = "+avx2" in flags and lanes * dtype.itemsize == 32
    is_hardware = options.gathers == "hardware"
    return Vectors(lanes, dtype, is_hardware, vector_math(), options.has("memory"), not is_zen, permutes)


def expanded_lanes(options: Options, dtype: np.dtype) -> int:
    """The lanes of a vector where masks tell what is read of it, and expand it, and are wanted; else 0."""
    v = vectors(options, dtype)
    return v.lanes if (v.is_avx512 or v.permutes) and options.has("memory") else 0


class CpuMachine(HostMachine):
    """Machine code for a schedule's kernels, compiled or from the cache; the engine keeps it alive."""

    def __init__(self, schedule: Schedule, options: Options, dtype: np.dtype):
        v = vectors(options, dtype)
        module = TARGETS["cpu"](schedule.plan, v)
        key, code = _cached(module.text)
        self.was_cached = code is not None
        compiled = None if code else started(lambda: _compiled(key, module.text))
        super().__init__(schedule.plan, dtype)  # packs the tables
        code = code or compiled.result()  # type: ignore[union-attr]
        self.code_bytes = len(code)
        self.traits = {"lanes": v.lanes, "threads": options.worker_count}
        self.sources = {"llvm": lambda: module.text, "asm": lambda: assembly(module.text)}
        functions = [f"k{number}" for number in range(max(module.functions, default=-1) + 1)]
        self._engine, addresses = _loaded(code, functions)
        # the buffers of all kernels, one kernel's after the other; per kernel, its function and where its buffers begin
        self._buffers = np.array([b for buffers in module.buffers for b in buffers], np.int64)
        ends = np.cumsum([len(buffers) for buffers in module.buffers], dtype=np.int64)
        kernels = np.stack([addresses[module.functions], np.append(0, ends)[:-1]], axis=1)
        helpers = min(options.worker_count - 1, _most_helpers())
        self._work = Work(kernels, schedule.tasks, schedule.shares, helpers)

    def _launch(self, buffers: np.ndarray) -> None:
        own = buffers[self._buffers]
        _crew().run(self._work, address(own))


def describe() -> str:
    """The processor, in a line."""
    return f"{host()[0]}, {os.cpu_count()} cores"


def _cached(text: str) -> tuple[str, bytes | None]:
    """The key of object code in the cache, and what is there."""
    key = cache.key(text, *host(), llvmlite.__version__)
    return key, cache.load(key)


def _compiled(key: str, text: str) -> bytes:
    """Object code that was not in the cache, and is now."""
    with _LOCK:
        code = _compile(text, *host())
    cache.store(key, code)
    return code


def _loaded(code: bytes, functions: list[str]) -> tuple[object, np.ndarray]:
    """The engine that holds some object code, and the addresses of functions."""
    with _LOCK:
        linker = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault")
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), linker)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(name) for name in functions]
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


def _most_helpers() -> int:
    """As many threads as Numba may use, but for the caller."""
    return config.NUMBA_NUM_THREADS - 1  # pyright: ignore[reportAttributeAccessIssue]


@functools.cache
def _sharing() -> tuple[object, list[int]]:
    """The engine, and the functions, with which threads share tasks."""
    text = crew()
    key, code = _cached(text)
    engine, addresses = _loaded(code or _compiled(key, text), ["run", "lead", "help"])
    return engine, addresses.tolist()


@functools.cache
def _crew() -> Crew:
    run, lead, help_ = _sharing()[1]
    return Crew(run, lead, help_, _most_helpers())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crew.cache_clear)  # threads do not survive a fork; others are started
