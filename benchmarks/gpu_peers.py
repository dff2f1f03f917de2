"""Who else does the work on a GPU: CuPy running the reference code, cuSPARSE under its products, JAX.

A peer is prepared, its result is checked against geoopt's, and then it is timed. What keeps one from being timed is
told instead of its time. On the host, NumPy, SciPy and JAX on the CPU stand for them, to check this file.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from . import run
from .gpu_timing import Elapsed, by_clock, on
from .peers import loaded, preparation
from .records import Work

PATIENCE = 30  # seconds that preparing a peer may take
TOO_LONG = f"preparing it takes more than {PATIENCE} s"


@dataclasses.dataclass(frozen=True)
class GpuPeer:
    """What is timed: ``call``, by ``elapsed``;  result : of a call, for the check"""

    result: list
    call: Callable[[], object]
    elapsed: Elapsed


class LeftOut(Exception):
    """A peer that is not timed; the message says why."""


def peers(work: Work, on_cpus: tuple[str, ...], device: str) -> dict[str, Callable[[], GpuPeer]]:
    """What prepares each peer, by name. JAX is last: where its compiler takes too long, the process ends.

    on_cpus : the peers of the work's benchmark: where NumPy has no code, as for derivatives, CuPy has none
    """
    products, arrays = ("cuSPARSE", "CuPy") if device == "cuda" else ("SciPy", "NumPy")
    found: dict[str, Callable[[], GpuPeer]] = {}
    if "numpy" in on_cpus:
        found[products if work.key == "sparse" else arrays] = partial(_of_library, work, device)
    if "jax" in on_cpus:
        found["JAX"] = partial(_of_jax, work, device)
    return found


def prepared(
    prepare: Callable[[], GpuPeer], peer: str, want: list, work: Work, dtype: type, allowed: list[float]
) -> GpuPeer:
    """A peer that has been checked, or LeftOut. want : geoopt's result;  allowed : by part, at least"""
    try:
        found = prepare()
    except Exception as error:  # whatever it is, it is the peer's
        raise LeftOut(said(error)) from error
    usual = work.tolerance if dtype == np.float64 else work.single
    least = max(usual, work.approximate.get("jax" if peer == "JAX" else "numpy", 0.0))
    if wrong := beyond(differences(found.result, want), allowed, least):
        raise LeftOut(f"differs from geoopt {wrong}")
    return found


def differences(got: list, want: list) -> list[float]:
    """Of every part of a result, relative to its largest value."""
    if len(got) != len(want):
        return [np.inf] * len(want)
    return [run.difference([g], [w]) for g, w in zip(got, want, strict=True)]


def beyond(off: list[float], allowed: list[float], least: float) -> str:
    """By how much differences are larger than allowed, the first that is; empty where none is."""
    limits = [max(least, limit) for limit in allowed]
    return next((f"by {d:.1e}, {m:.0e} is allowed" for d, m in zip(off, limits, strict=True) if not d < m), "")


def said(error: Exception) -> str:
    """The kind of an error, and the first line of its message."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first[:200]}" if first else type(error).__name__


# -- CuPy, cuSPARSE ---------------------------------------------------------------------------------------


def _of_library(work: Work, device: str) -> GpuPeer:
    """The function that geoopt compiles, unchanged, called with arrays on the device."""
    arguments = tuple(_there(a, device) for a in work.arguments)
    call = partial(work.function, *arguments)
    with _patience(device, is_python=True):
        return GpuPeer(run.parts(call()), call, on(device))


def _there(value: Any, device: str) -> Any:
    """Arrays and matrices, in records too, where the device reads them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _there(getattr(value, f.name), device) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **fields)
    [there], _ = run.on_device((value,), device)
    return there


# -- JAX --------------------------------------------------------------------------------------------------


def _of_jax(work: Work, device: str) -> GpuPeer:
    """The benchmarks' code for JAX. It gives NumPy's arrays; timed is what computes them, which leaves them on the
    device."""
    module = loaded("jax")
    prepare = preparation("jax", work.key, np.float64)
    if prepare is None:
        raise LeftOut(f"there is no code for {work.key!r}")
    import jax

    if device == "cuda":
        jax.config.update("jax_platforms", "cuda")  # the module chooses the CPU; nothing has run yet
    compiled: list[Callable] = []

    def kept(function: Callable) -> Callable:
        compiled.append(jax.jit(function))
        return compiled[-1]

    with mock.patch.object(module, "_waiting", kept), _patience(device):
        result = run.parts(prepare(*work.given)(*work.inputs))
    inputs = [jax.device_put(x) for x in work.inputs]
    # XLA has streams of its own, whose work events on CuPy's do not see
    elapsed = partial(by_clock, finish=jax.block_until_ready)
    return GpuPeer(result, partial(compiled[0], *inputs), elapsed)


@contextmanager
def _patience(device: str, is_python: bool = False) -> Iterator[None]:
    """Ends what takes too long, by a TimeoutError if it runs Python's code; else nothing ends it but the end of the
    process, which is one of many then."""
    if device != "cuda":
        yield
        return
    before = signal.signal(signal.SIGALRM, _too_long if is_python else signal.SIG_DFL)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _too_long(*_: Any) -> None:
    raise TimeoutError(TOO_LONG)
