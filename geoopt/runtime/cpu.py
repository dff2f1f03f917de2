"""The CPU: machine code from LLVM IR by llvmlite, whose tasks threads of a `Crew` share."""

from __future__ import annotations

import functools
import os
import threading
from functools import cached_property

import llvmlite.binding as llvm
import numpy as np

from ..codegen import TARGETS
from ..codegen.llvm import Emitted, module
from ..codegen.llvm.crew import crew
from ..codegen.llvm.math import vector_names
from ..codegen.vectors import Vectors
from ..integers.cores import number_of_cores, started
from ..native import address, cache, object_code
from ..native.object_code import assembly, host
from ..options import Options
from ..plan import Schedule
from ..stages import Context
from .crew import Crew, Work
from .host import LARGE, HostMachine

FAIR = 4  # groups of a batch's items for each thread, so that all of them end at about the same time
_MAKING = threading.Lock()  # one crew, whose helpers run code that stays, however many call first


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


@functools.lru_cache
def _flags(features: str) -> frozenset[str]:
    return frozenset(features.split(","))


def vectors(options: Options, dtype: np.dtype) -> Vectors:
    """The vector shape for this machine and these options."""
    return vectors_of(*host(), vector_math(), options, dtype)


def vectors_of(name: str, features: str, math: frozenset[str], options: Options, dtype: np.dtype) -> Vectors:
    """The same for any processor. math : the symbols of the vector functions that are there"""
    flags = _flags(features)
    bits = 512 if "+avx512f" in flags else 256 if "+avx" in flags else 128
    lanes = options.lanes or bits // (8 * dtype.itemsize)
    is_zen = name.startswith("znver")  # whole lines are written without being read
    permutes = "+avx2" in flags and lanes * dtype.itemsize == 32
    is_hardware = options.gathers == "hardware"
    return Vectors(lanes, dtype, is_hardware, math, options.has("memory"), not is_zen, permutes, not options.strict)


class Modules:
    """What is compiled of a program, from the cache or, beside what the caller does meanwhile, by LLVM.

    code : by its key, of each module;  were_cached : all of them
    """

    def __init__(self, emitted: Emitted):
        self.texts, self.numbers = len(emitted.texts), list(emitted.modules())
        modules = [module(emitted.texts[n] for n in numbers) for numbers in self.numbers]
        self.names = [object_code.name(host(), text) for text in modules]
        found = {name: cache.load(cache.programs(), name) for name in self.names}
        missing = {name: text for name, text in zip(self.names, modules, strict=True) if found[name] is None}
        self.were_cached = not missing
        self._known = {name: code for name, code in found.items() if code is not None}
        compiled = lambda: {name: _compiled(name, text) for name, text in missing.items()}  # noqa: E731
        self._future = started(compiled) if missing else None

    @cached_property
    def code(self) -> dict[str, bytes]:
        return self._known if self._future is None else self._known | self._future.result()

    def placed(self) -> tuple[list[object_code.Engine], np.ndarray]:
        """Engines, which hold the code, and the address of each text's function."""
        engines, addresses = [], np.zeros(self.texts, np.int64)
        for name, numbers in zip(self.names, self.numbers, strict=True):
            engine, found = object_code.placed(name, self.code[name], [f"k{n}" for n in range(len(numbers))])
            engines.append(engine)
            addresses[numbers] = found
        return engines, addresses


def _compiled(name: str, text: str) -> bytes:
    return cache.obtained(cache.programs(), name, lambda: object_code.compiled(name, text, host()))[0]


class CpuMachine(HostMachine):
    """Machine code for a schedule's kernels; engines keep it alive."""

    device = "cpu"

    def __init__(self, schedule: Schedule, context: Context):
        v, options = context.vectors, context.options
        assert v is not None
        emitted = TARGETS["cpu"](schedule.plan, v)
        code = Modules(emitted)
        super().__init__(schedule, context)  # packs the tables
        self.code, self.was_cached = code.code, code.were_cached
        self.traits = {"lanes": v.lanes, "threads": options.worker_count}
        self.sources = {"llvm": lambda: emitted.text, "asm": lambda: assembly(emitted.text, host())}
        self._engines, addresses = code.placed()
        # the arrays of all kernels, one kernel's after the other; per kernel, its function and where its arrays begin
        places = np.array([place for arrays in emitted.arrays for place in arrays], np.int64).reshape(-1, 2)
        self._buffers, self._offsets = places[:, 0].copy(), places[:, 1] * self.dtype.itemsize
        self._has_offsets = bool(self._offsets.any())  # small programs notice each operation of a call
        ends = np.cumsum([len(arrays) for arrays in emitted.arrays], dtype=np.int64)
        kernels = np.stack([addresses[emitted.functions], np.append(0, ends)[:-1]], axis=1)
        self._helpers = min(options.worker_count - 1, _most_helpers())
        self._work = Work(kernels, schedule.tasks, schedule.shares, self._helpers)
        self._work_of_batch: dict[int, Work] = {}  # by how many items

    def _launch(self, buffers: np.ndarray) -> None:
        own = buffers[self._buffers]
        if self._has_offsets:
            own += self._offsets
        shared_crew().run(self._work, address(own))

    def _groups(self, size: int) -> list[int]:
        threads = 1 + self._helpers
        if size % threads and size < FAIR * threads:
            return [size]
        is_large = self.plan.workspace_size * self.dtype.itemsize > LARGE  # each group has a workspace of its own
        count = min(size, threads if threads == 1 or is_large else FAIR * threads)
        return [len(group) for group in np.array_split(range(size), count)]

    def _launch_batch(self, buffers: np.ndarray, groups: list[int]) -> None:
        if len(groups) == 1 and self._helpers:
            super()._launch_batch(buffers, groups)  # threads share the work of each item
            return
        size, own = len(buffers), buffers.take(self._buffers, axis=1) + self._offsets
        if size not in self._work_of_batch:
            self._work_of_batch[size] = self._work.of_batch(groups, own.shape[1], self._helpers)
        shared_crew().run(self._work_of_batch[size], address(own))


MACHINE = CpuMachine


def describe() -> str:
    """The processor, in a line."""
    return f"{host()[0]}, {os.cpu_count()} cores"


def _most_helpers() -> int:
    """As many threads as there are cores, but for the caller."""
    return number_of_cores() - 1


@functools.cache
def _sharing() -> tuple[object, list[int]]:
    """The engine, and the functions, with which threads share tasks."""
    text = crew()
    name = object_code.name(host(), text)
    code, _ = cache.obtained(cache.loops(), name, lambda: object_code.compiled(name, text, host()))
    engine = object_code.Engine()
    return engine, engine.add(code, ["run", "lead", "help"]).tolist()


def shared_crew() -> Crew:
    """The threads of this process, which share the tasks of any call."""
    with _MAKING:
        return _crew()


@functools.cache
def _crew() -> Crew:
    run, lead, help_ = _sharing()[1]
    return Crew(run, lead, help_, _most_helpers())


def _after_fork() -> None:
    """Threads do not survive a fork; others are started."""
    global _MAKING
    _MAKING = threading.Lock()
    _crew.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
