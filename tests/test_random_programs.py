"""Random NumPy programs: compiled equals NumPy, for both types and any number of threads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.sparse import from_triplets


class Choices:
    """A random but repeatable NumPy program over arrays of shapes (n,) and (n, 3)."""

    def __init__(self, seed: int, length: int):
        self.seed, self.length = seed, length

    def __call__(self, x, y, h):
        rng = np.random.default_rng(self.seed)
        pool = [x, y, x * h]
        for _ in range(self.length):
            a = pool[rng.integers(len(pool))]
            alike = [p for p in pool if p.shape[0] == a.shape[0]]
            b = alike[rng.integers(len(alike))]
            pool.append(self.step(rng, a, b, h))
        return tuple(pool[3:])

    def step(self, rng, a, b, h):
        n = a.shape[0]
        kind = rng.choice(["add", "multiply", "divide", "root", "where", "gather", "sum", "dot", "assemble", "stack"])
        if a.ndim != b.ndim:
            a, b = (a[:, None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        if kind in ("add", "multiply"):
            return a + b - 0.25 if kind == "add" else a * b * h
        if kind == "divide":
            return a / (1.0 + b * b)
        if kind == "root":
            return np.sqrt(np.abs(a) + 0.5) - np.minimum(a, b)
        if kind == "where":
            return np.where(a < b + 0.1, a, 0.5 * b)
        index = rng.integers(n, size=rng.integers(1, 30))
        if kind == "gather":
            return a[index] - a[rng.integers(n, size=len(index))]
        if kind == "sum":
            return np.sum(a, axis=0, keepdims=True) / n if rng.random() < 0.3 else np.sum(a.reshape(n, -1), axis=1)
        if kind == "dot":
            return np.einsum("ni,ni->n", a.reshape(n, -1), a.reshape(n, -1))
        if kind == "assemble":
            values = a.reshape(n, -1)[:, 0][index]
            M = from_triplets(index, rng.integers(n, size=len(index)), values, (n, n))
            return M @ np.sum(a.reshape(n, -1), axis=1)
        return np.stack([a.reshape(n, -1)[:, 0], a.reshape(n, -1)[:, -1], np.sum(a.reshape(n, -1), axis=1)], axis=1)


@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 8),
    n=st.integers(1, 20),
    dtype=st.sampled_from([np.float64, np.float32]),
    threads=st.sampled_from([1, 3]),
    t_complexity=st.sampled_from([0, 4, 1000]),
    blocks=st.booleans(),
    without=st.sets(st.sampled_from(geoopt.options.FAMILIES)),
)
def test_compiled_equals_numpy(seed, length, n, dtype, threads, t_complexity, blocks, without):
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, 3)), 0.7]
    inputs = [np.asarray(i, dtype) if isinstance(i, np.ndarray) else i for i in inputs]
    program = Choices(seed, length)
    options = geoopt.Options(threads=threads, t_complexity=t_complexity, blocks=blocks, without=frozenset(without))
    compiled = geoopt.compile(program, *inputs, dtype=dtype, options=options)
    for got, want in zip(compiled(*inputs), program(*(np.asarray(i, float) for i in inputs)), strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=0, atol=scale * (1e-10 if dtype == np.float64 else 2e-3))
