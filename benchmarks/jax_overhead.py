"""What a call of a program of three numbers costs within `jax.jit`: ``python -m benchmarks.jax_overhead``.

Beside the same function of JAX's own, and the program behind `jax.pure_callback`: medians of rounds that take turns.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import geoopt
import geoopt.jax
from geoopt.apps.timing import alternate


def twisted(x: Any) -> Any:
    return np.stack([x[1] * x[2], x[0] * x[0], np.sin(x[0])])


def of_jax(x: Any) -> Any:
    return jnp.stack([x[1] * x[2], x[0] * x[0], jnp.sin(x[0])])


def main() -> None:
    x, example = jnp.ones(3, jnp.float32), np.ones(3)
    program = geoopt.compile(twisted, example, dtype=np.float32)
    prepared = geoopt.jax.function(twisted, example)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    through_python = jax.jit(lambda x: jax.pure_callback(lambda a: program(np.asarray(a)), shape, x))
    on_host = np.asarray(x)
    calls = {
        "JAX's own": jax.jit(of_jax),
        "geoopt.jax.function": jax.jit(prepared),
        "the same outside of jit": prepared,
        "jax.pure_callback": through_python,
        "the program alone": lambda x: program(on_host),
    }
    timings = alternate({name: lambda f=f: jax.block_until_ready(f(x)) for name, f in calls.items()}, rounds=50)
    for name, timing in timings.items():
        print(f"{name:24} {1e6 * timing.median:6.1f} µs")


if __name__ == "__main__":
    main()
