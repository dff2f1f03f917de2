"""Calls of programs by XLA on the CPU: its C interface for foreign functions, without a copy and without a compiler.

XLA gives a handler the address of a frame, in which the addresses of buffers and an attribute lie: the number of a
program. The handler is a Python function, called through `ctypes`. The structures are those of
``xla/ffi/api/c_api.h`` in `jax.ffi.include_dir`, whose fields only ever get others behind them.
"""

from __future__ import annotations

import ctypes
import functools
import re
from ctypes import POINTER, Structure, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..differentiable.numbers import Numbered
from ..differentiable.runner import Runner
from ..errors import InternalError

TARGET = "geoopt_program"
MAJOR = 0  # version of the interface
METADATA, INTERNAL = 1, 13  # an extension's type, a code of errors


class _Extension(Structure):
    _fields_ = (("struct_size", c_size_t), ("type", c_int), ("next", c_void_p))


class _Version(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    _fields_ = (("struct_size", c_size_t), ("version", _Version))


class _MetadataExtension(Structure):
    _fields_ = (("base", _Extension), ("metadata", POINTER(_Metadata)))


class _Api(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("version", _Version),
        ("internal", c_void_p),
        ("error_create", c_void_p),
    )


class _ErrorArguments(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension", c_void_p), ("message", ctypes.c_char_p), ("code", c_int))


class _Buffer(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension", c_void_p), ("dtype", c_int), ("data", c_void_p))


class _Buffers(Structure):
    """Of arguments or of results."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("items", c_void_p),
    )


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", POINTER(c_int64)))


class _Attributes(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("names", c_void_p),
        ("items", POINTER(POINTER(_Scalar))),
    )


class _Frame(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", POINTER(_Extension)),
        ("api", POINTER(_Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    )


_CREATE_ERROR = ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))
_DATA = _Buffer.data.offset

_runners: Numbered[Runner] = Numbered()


def number_of(runner: Runner) -> np.int64:
    """What XLA's code calls a program by; the program must outlive that code."""
    register()
    return np.int64(_runners.number_of(runner))


@functools.cache
def register() -> None:
    """Make the handler known to XLA, once."""
    pointer = ctypes.cast(_HANDLER, c_void_p).value
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(pointer), platform="cpu")


@ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))
def _HANDLER(pointer: Any) -> int | None:
    """Called in any thread, with the interpreter's lock. Returns the address of an error."""
    frame = pointer.contents
    try:
        if frame.extension and frame.extension.contents.type == METADATA:
            _tell_version(frame)
        else:
            _running(frame.attributes.items[0].contents.value[0]).run_at(
                _addresses(frame.arguments), _addresses(frame.results)
            )
    except BaseException as error:  # nobody above could raise it
        return _error(frame, f"{type(error).__name__}: {error}")
    return None


def _running(number: int) -> Runner:
    runner = _runners.find(number)
    if runner is None:
        raise InternalError("jax", "the program that XLA calls is gone")
    return runner


def _addresses(buffers: _Buffers) -> list[int]:
    items = (c_size_t * buffers.size).from_address(buffers.items)
    return [c_size_t.from_address(item + _DATA).value for item in items]


def _tell_version(frame: _Frame) -> None:
    """XLA asks for the version that the handler was written for, and refuses others; minor ones only add fields."""
    version = ctypes.cast(frame.extension, POINTER(_MetadataExtension)).contents.metadata.contents.version
    version.major, version.minor = MAJOR, _minor_version()


def _minor_version() -> int:
    """That of the header that is installed, which code in C would be compiled with."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text())
    return int(found[1]) if found else 0


def _error(frame: _Frame, message: str) -> int | None:
    text = message.encode()
    arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text, INTERNAL)
    return _CREATE_ERROR(frame.api.contents.error_create)(ctypes.byref(arguments))
