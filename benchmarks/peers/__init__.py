"""What others do: the same work on the same data, one file or folder per peer.

A peer has a function for each kind of work that it does, named as in `records.Work.key`. It is given the arguments of
the function that geoopt compiles, prepares what depends on the structure alone, and returns a function of the
variables that gives the same result. Arrays that it returns may be the same ones in each call.

Of the whole peer, where they are needed:
``threads(n)``   a context in which it uses at most n threads; without it, it has one thread
``DTYPES``       the types it computes in, without it both

What is missing (a library, a compiler) it says by an ImportError when it is imported or when it prepares; of data that
it cannot take, by `UnfitError`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from geoopt.errors import ArgumentError


@dataclass(frozen=True)
class Peer:
    """title : in tables;  module : in this folder;  install : what to do where it is missing"""

    title: str
    module: str
    install: str


PEERS = {
    "numpy": Peer("NumPy + SciPy", "numpy_scipy", ""),
    "eigen": Peer("C++ with Eigen", "eigen", "install a C++ compiler and Eigen 3, or set EIGEN to its folder"),
    "cpp": Peer("C++, forward mode", "forward_mode", "install a C++ compiler"),
    "libigl": Peer("libigl", "libigl", "pip install libigl"),
    "gpytoolbox": Peer("gpytoolbox", "gpytoolbox_cotan", "pip install gpytoolbox"),
    "numba": Peer("Numba by hand", "numba_expert", "pip install numba"),
    "numba-svd": Peer("Numba by hand, SVD", "numba_svd", "pip install numba"),
    "jax": Peer("JAX", "jax_arrays", "pip install jax"),
    "warp": Peer("Warp", "warp_kernels", "pip install warp-lang"),
    "taichi": Peer("Taichi", "taichi_kernels", "pip install taichi"),
    "mkl": Peer("MKL", "mkl_sparse", "pip install sparse_dot_mkl mkl"),
    "mkl-two-stage": Peer("MKL, two stages", "mkl_two_stage", "pip install mkl"),
}


class MissingPeer(Exception):
    """A peer that cannot run here; the message says why and what to do."""


class UnfitError(ValueError):
    """Data that a peer cannot take."""


def loaded(name: str) -> ModuleType:
    """The module of a peer; ArgumentError for an unknown name, MissingPeer where it cannot run."""
    if name not in PEERS:
        raise ArgumentError(f"peer {name!r} is unknown; choose from {', '.join(PEERS)}")
    with saying_what_is_missing(name):
        return importlib.import_module(f"{__name__}.{PEERS[name].module}")


@contextmanager
def saying_what_is_missing(name: str) -> Iterator[None]:
    """Turns the ImportErrors of a peer into MissingPeer."""
    try:
        yield
    except ImportError as error:
        peer = PEERS[name]
        raise MissingPeer(f"{peer.title} is left out: {error} ({peer.install})") from error
    except UnfitError as error:
        raise MissingPeer(f"{PEERS[name].title} is left out: {error}") from error


def preparation(name: str, key: str, dtype: type) -> Callable | None:
    """The peer's function that prepares some work; None where it does not do that work."""
    module = loaded(name)
    prepare = getattr(module, key, None)
    types = getattr(module, "DTYPES", ("float64", "float32"))
    if prepare and np.dtype(dtype).name not in types:
        raise MissingPeer(f"{PEERS[name].title} is left out: it computes in {', '.join(types)} only")
    return prepare


def switch(name: str) -> Callable[[int], AbstractContextManager] | None:
    """The peer's switch for its number of threads; None where it has one thread."""
    return getattr(loaded(name), "threads", None)
