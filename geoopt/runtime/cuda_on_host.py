"""The text for CUDA, run by the host's processor, to check it and to debug it where there is no GPU.

A C++ compiler compiles the identical text behind a few lines that stand for what CUDA adds to the language; the
blocks of a launch run one after the other, and the threads of a block until each waits for the others.
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
from ..native import cache
from ..options import Options
from ..stages import Context
from . import nvrtc
from .host import HostMachine

COMPILERS = ("g++", "clang++")
STACK = 1 << 20  # bytes for a thread: long kernels have as many variables as operations
SIZES = (f"-DBLOCK={BLOCK}", f"-DSTACK={STACK}")
FLAGS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-x", "c++", "-w", *SIZES)
SHIM = """\
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#define __global__
#define __device__ static
#define __shared__ static thread_local
#define __launch_bounds__(...)
static double __dsub_rn(double a, double b) { return a - b; }
static float __fsub_rn(float a, float b) { return a - b; }
struct Index { unsigned x; };
static thread_local Index blockIdx, threadIdx, blockDim;
// the threads of a block take turns: each runs until it waits for the others, or to its end
static thread_local ucontext_t others, thread[BLOCK];
static thread_local bool is_over[BLOCK];
static void __syncthreads() { swapcontext(&thread[threadIdx.x], &others); }
template <class... P>
struct Call {
  static thread_local void (*kernel)(P...);
  static thread_local void** arguments;
  template <size_t... I>
  static void run(std::index_sequence<I...>) { kernel(*static_cast<P*>(arguments[I])...); }
  static void enter() {
    run(std::index_sequence_for<P...>());
    is_over[threadIdx.x] = true;
  }
};
template <class... P> thread_local void (*Call<P...>::kernel)(P...);
template <class... P> thread_local void** Call<P...>::arguments;
template <class... P>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, void** arguments) {
  Call<P...>::kernel = kernel;
  Call<P...>::arguments = arguments;
  blockDim.x = threads;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;  // memory for what is used of the stacks
  char* stacks = (char*)mmap(0, threads * size_t(STACK), PROT_READ | PROT_WRITE, flags, -1, 0);
  if (stacks == MAP_FAILED) abort();
  // from the last to the first: kernels must not rely on an order
  for (blockIdx.x = blocks; blockIdx.x-- > 0;) {
    for (unsigned t = 0; t < threads; ++t) {
      getcontext(&thread[t]);
      thread[t].uc_stack.ss_sp = stacks + t * size_t(STACK);
      thread[t].uc_stack.ss_size = STACK;
      thread[t].uc_link = &others;
      makecontext(&thread[t], Call<P...>::enter, 0);
      is_over[t] = false;
    }
    for (bool is_waiting = true; is_waiting;) {
      is_waiting = false;
      for (unsigned t = threads; t-- > 0;) {
        if (is_over[t]) continue;
        threadIdx.x = t;
        swapcontext(&others, &thread[t]);
        is_waiting |= !is_over[t];
      }
    }
  }
  munmap(stacks, threads * size_t(STACK));
}
"""
LAUNCHER = """\
extern "C" void launch_{0}(unsigned blocks, unsigned threads, void** arguments) {{
  launch({0}, blocks, threads, arguments);
}}
"""


class HostedCudaMachine(HostMachine):
    """A grid's kernels as a shared library."""

    device = "cuda-on-host"

    def __init__(self, grid: Grid, context: Context):
        dtype = context.dtype
        super().__init__(grid, context)
        text = TARGETS["cuda"](grid, dtype)
        self._launches = [launch for level in grid.launches() for launch in level]
        shimmed = "\n".join([SHIM, text, *(LAUNCHER.format(launch.name) for launch in self._launches)])
        name, (code, self.was_cached) = _compiled(shimmed)
        self.code = {name: code}
        self.traits = {"threads_per_block": BLOCK}
        self.sources = {"cuda": lambda: text, "ptx": lambda: nvrtc.compiled(text).ptx}
        self._library = _loaded(code)

    def _launch(self, buffers: np.ndarray) -> None:
        for launch in self._launches:
            count = ctypes.c_int(launch.count)
            places = [buffers.ctypes.data + buffers.itemsize * b for b in launch.buffers]
            arguments = (ctypes.c_void_p * (1 + len(places)))(ctypes.addressof(count), *places)
            self._library[f"launch_{launch.name}"](launch.blocks, BLOCK, arguments)


MACHINE = HostedCudaMachine


def vectors(options: Options, dtype: np.dtype) -> None:
    """The text has none."""


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


def _compiled(text: str) -> tuple[str, tuple[bytes, bool]]:
    """The name of a shared library in the cache, the library, and whether it was there."""
    compiler = _compiler()
    key = cache.key(text, _version(compiler), *FLAGS)
    return key, cache.obtained(cache.programs(), key, lambda: _made(compiler, text))


def _made(compiler: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        run = subprocess.run([compiler, *FLAGS, "-", "-o", library], input=text, capture_output=True, text=True)
        if run.returncode:
            raise InternalError("assemble", f"the text for CUDA does not compile:\n{run.stderr}")
        return library.read_bytes()


def _loaded(code: bytes) -> ctypes.CDLL:
    """The library, whose file may go as soon as it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        library.write_bytes(code)
        return ctypes.CDLL(str(library))
