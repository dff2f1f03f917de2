"""The text for CUDA, run by the host's processor, to check it and to debug it where there is no GPU.

A C++ compiler compiles the identical text behind a few lines that stand for what CUDA adds to the language; the
threads of a launch run one after the other.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ..codegen import TARGETS
from ..errors import DeviceError, InternalError
from ..grid import BLOCK, Grid
from ..options import Options
from . import cache, nvrtc
from .host import HostMachine

COMPILERS = ("g++", "clang++")
FLAGS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-x", "c++", "-w")
SHIM = """\
#include <math.h>
#include <utility>
#define __global__
#define __device__ static
#define __launch_bounds__(threads)
struct Index { unsigned x; };
static thread_local Index blockIdx, threadIdx, blockDim;
// from the last thread to the first: kernels must not rely on an order
template <class... P, size_t... I>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, void** arguments, std::index_sequence<I...>) {
  blockDim.x = threads;
  for (blockIdx.x = blocks; blockIdx.x-- > 0;)
    for (threadIdx.x = threads; threadIdx.x-- > 0;) kernel(*static_cast<P*>(arguments[I])...);
}
template <class... P>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, void** arguments) {
  launch(kernel, blocks, threads, arguments, std::index_sequence_for<P...>());
}
"""
LAUNCHER = """\
extern "C" void launch_{0}(unsigned blocks, unsigned threads, void** arguments) {{
  launch({0}, blocks, threads, arguments);
}}
"""


class HostedCudaMachine(HostMachine):
    """A grid's kernels as a shared library."""

    def __init__(self, grid: Grid, options: Options, dtype: np.dtype):
        super().__init__(grid.plan, dtype)
        text = TARGETS["cuda"](grid, dtype)
        self._launches = grid.launches()
        shimmed = "\n".join([SHIM, text, *(LAUNCHER.format(launch.name) for launch in self._launches)])
        code, self.was_cached = _compiled(shimmed)
        self.code_bytes = len(code)
        self.traits = {"threads_per_block": BLOCK}
        self.sources = {"cuda": lambda: text, "ptx": lambda: nvrtc.compiled(text).ptx}
        self._library = _loaded(code)

    def _launch(self, buffers: np.ndarray) -> None:
        for launch in self._launches:
            members = ctypes.c_int(launch.members)
            places = [buffers.ctypes.data + buffers.itemsize * b for b in launch.buffers]
            arguments = (ctypes.c_void_p * (1 + len(places)))(ctypes.addressof(members), *places)
            self._library[f"launch_{launch.name}"](launch.blocks, BLOCK, arguments)


def describe() -> str:
    """The C++ compiler, in a line."""
    return _version(_compiler())


def _compiler() -> str:
    chosen = os.environ.get("CXX")
    found = shutil.which(chosen) if chosen else next(filter(None, map(shutil.which, COMPILERS)), None)
    if not found:
        tried = f"$CXX, which is {chosen!r}" if chosen else f"$CXX, {', '.join(COMPILERS)}"
        raise DeviceError(f"device 'cuda-on-host' needs a C++ compiler; none is found by {tried}; install one")
    return found


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _compiled(text: str) -> tuple[bytes, bool]:
    """A shared library, and whether it was in the cache."""
    compiler = _compiler()
    key = cache.key(text, _version(compiler), *FLAGS)
    found = cache.load(key)
    if found:
        return found, True
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        run = subprocess.run([compiler, *FLAGS, "-", "-o", library], input=text, capture_output=True, text=True)
        if run.returncode:
            raise InternalError("assemble", f"the text for CUDA does not compile:\n{run.stderr}")
        code = library.read_bytes()
    cache.store(key, code)
    return code, False


def _loaded(code: bytes) -> ctypes.CDLL:
    """The library, whose file may go as soon as it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        library.write_bytes(code)
        return ctypes.CDLL(str(library))
