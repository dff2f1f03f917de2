"""NVIDIA's run-time compiler through ctypes: it compiles CUDA C for any GPU, on machines without one.

The library comes with ``pip install nvidia-cuda-nvrtc-cu12 cuda-pathfinder``, or with CuPy.
"""

from __future__ import annotations

import ctypes
import functools
import re
from dataclasses import dataclass

from ..errors import DeviceError, InternalError

ARCHITECTURE = "sm_90"


@dataclass(frozen=True)
class Compiled:
    """PTX, the assembly that all GPUs share; the machine code of one; and what the compiler says about it."""

    ptx: str
    code: bytes
    log: str

    @property
    def spilled_bytes(self) -> int:
        """Bytes that all kernels store to memory because registers do not suffice."""
        return sum(map(int, re.findall(r"(\d+) bytes spill stores", self.log)))

    @property
    def registers(self) -> list[int]:
        """Registers per thread, of each kernel."""
        return list(map(int, re.findall(r"Used (\d+) registers", self.log)))


@functools.cache
def library() -> ctypes.CDLL:
    """NVRTC; DeviceError where it is not installed."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError, OSError) as error:
        packages = "nvidia-cuda-nvrtc-cu12 cuda-pathfinder"
        raise DeviceError(f"NVRTC is not found ({error}); pip install {packages}") from error


def version() -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compiled(text: str, architecture: str = ARCHITECTURE, contracts: bool = True) -> Compiled:
    """Compile a module's text. Numbers below the range of usual ones are computed with, too.

    architecture : ``sm_75``, ``sm_90``, ...;  contracts : whether a product and a sum may be rounded once, as one
    """
    nvrtc, program = library(), ctypes.c_void_p()
    own = ("--std=c++17", "--ptxas-options=-v", f"--fmad={str(contracts).lower()}")
    options = [f"--gpu-architecture={architecture}", *own]
    encoded = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None)
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
        log = _part(program, "ProgramLog").decode()
        if failed:
            raise InternalError("assemble", f"the text for CUDA does not compile:\n{log}")
        return Compiled(_part(program, "PTX").decode(), _part(program, "CUBIN"), log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _part(program: ctypes.c_void_p, name: str) -> bytes:
    """The log, the PTX or the machine code of a compiled program."""
    size = ctypes.c_size_t()
    getattr(library(), f"nvrtcGet{name}Size")(program, ctypes.byref(size))
    content = ctypes.create_string_buffer(size.value)
    getattr(library(), f"nvrtcGet{name}")(program, content)
    return content.raw if name == "CUBIN" else content.value
