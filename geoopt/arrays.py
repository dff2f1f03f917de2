"""Arrays of both kinds: NumPy's with SciPy's matrices, and on the GPU CuPy's with those of `cupyx.scipy.sparse`.

NumPy's functions take both; where `np.asarray`, `np.empty` and `np.zeros` make new arrays, ``like=`` says of which kind
(`np.ones`, `np.full` and `np.eye` would hand CuPy an argument that it does not know). CuPy is imported only where its
arrays are.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import scipy.sparse as sp

from .numeric import is_on_gpu

Array = Any  # NumPy's, or CuPy's, which is not there on every machine


def on_device(value: Any, device: str) -> Any:
    """An array or a matrix where programs for a device take and give theirs: a copy on the GPU for "cuda"."""
    if device != "cuda":
        return value
    if sp.issparse(value):
        return importlib.import_module("cupyx.scipy.sparse").csr_array(value)
    return importlib.import_module("cupy").asarray(value)


def wait(device: str) -> None:
    """Wait until what was asked of a device is done: the GPU works on while the host goes on."""
    if device == "cuda":
        importlib.import_module("cupy").cuda.get_current_stream().synchronize()


def checked(array: Array) -> AbstractContextManager:
    """Within this, decompositions of such arrays raise LinAlgError; CuPy fetches whether they succeed only if told."""
    return importlib.import_module("cupyx").errstate(linalg="raise") if is_on_gpu(array) else nullcontext()
