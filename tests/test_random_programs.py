"""Random NumPy programs on random meshes: compiled equals NumPy, for both types, any threads and all switches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import geoopt
from geoopt.sparse import from_diagonal, from_triplets

from .conftest import needs_cuda_on_host

KINDS = (
    *("add", "multiply", "divide", "root", "where", "gather", "sum", "dot", "assemble", "stack"),
    *("function", "both", "product", "small matrices", "in place", "numbers", "one ring", "block", "power"),
    *("one after another", "turned", "masks", "lists", "type tests", "early exit"),
)
MOST_EXITS = 3  # of a program: each may double the paths through it


class Choices:
    """A random but repeatable NumPy program over arrays of shapes (n,) and (n, 3) and triangles (m, 3)."""

    def __init__(self, seed: int, length: int):
        self.seed, self.length = seed, length

    def __call__(self, x, y, h, F):
        rng = np.random.default_rng(self.seed)
        pool = [x, y, x * h]
        exits = 0
        for _ in range(self.length):
            a = pool[rng.integers(len(pool))]
            alike = [p for p in pool if p.shape[0] == a.shape[0]]
            b = alike[rng.integers(len(alike))]
            kind = str(rng.choice(KINDS))
            exits += kind == "early exit"
            kind = kind if exits <= MOST_EXITS else "add"
            pool.append(getattr(self, kind.replace(" ", "_"))(rng, *_alike(a, b), h, F))
        return (*pool[3:], pool[-1].ravel()[0] * h if pool[-1].size else h + 0.0)

    def add(self, rng, a, b, h, F):
        return a + b - 0.25

    def multiply(self, rng, a, b, h, F):
        return a * b * h

    def divide(self, rng, a, b, h, F):
        return a / (1.0 + b * b)

    def root(self, rng, a, b, h, F):
        return np.sqrt(np.abs(a) + 0.5) - np.minimum(a, b)

    def where(self, rng, a, b, h, F):
        return np.where(a < b + 0.1, a, 0.5 * b)

    def gather(self, rng, a, b, h, F):
        index = rng.integers(a.shape[0], size=rng.integers(1, 30))
        return a[index] - a[rng.integers(a.shape[0], size=len(index))]

    def sum(self, rng, a, b, h, F):
        n = a.shape[0]
        return np.sum(a, axis=0, keepdims=True) / n if rng.random() < 0.3 else np.sum(a.reshape(n, -1), axis=1)

    def dot(self, rng, a, b, h, F):
        flat = a.reshape(a.shape[0], -1)
        return np.einsum("ni,ni->n", flat, flat)

    def assemble(self, rng, a, b, h, F):
        n = a.shape[0]
        index = rng.integers(n, size=rng.integers(1, 30))
        values = a.reshape(n, -1)[:, 0][index]
        M = from_triplets(index, rng.integers(n, size=len(index)), values, (n, n))
        return M @ np.sum(a.reshape(n, -1), axis=1)

    def stack(self, rng, a, b, h, F):
        flat = a.reshape(a.shape[0], -1)
        return np.stack([flat[:, 0], flat[:, -1], np.sum(flat, axis=1)], axis=1)

    def function(self, rng, a, b, h, F):
        f = (np.sin, np.cos, np.tanh, np.arctan, np.cbrt, np.expm1)[rng.integers(6)]
        return f(np.clip(a, -2.0, 2.0)) + np.exp(np.minimum(b, 1.0))

    def both(self, rng, a, b, h, F):
        inside = (a > -0.5) & (b < 0.5) | ~(a < b)
        return np.where(inside, np.hypot(a, b), np.sign(a - 0.3))

    def product(self, rng, a, b, h, F):
        n = a.shape[0]
        index = rng.integers(n, size=(2, rng.integers(1, 20)))
        A = from_triplets(index[0], index[1], b.reshape(n, -1)[index[0], -1], (n, n))
        return ((A + from_diagonal(a.reshape(n, -1)[:, 0])) @ A.T @ A).sum(axis=1) / (4.0 + n)

    def small_matrices(self, rng, a, b, h, F):
        rows = np.broadcast_to(a.reshape(a.shape[0], -1)[:, :1], (a.shape[0], 3))
        M = rows[:, :, None] * rows[:, None, :] / (1.0 + np.sum(rows * rows, axis=1))[:, None, None] + 2 * np.eye(3)
        return np.linalg.solve(M, rows[..., None])[..., 0] / np.linalg.det(M)[:, None]

    def in_place(self, rng, a, b, h, F):
        out = np.zeros_like(a + b)
        out += b
        out[rng.integers(a.shape[0], size=3)] = 0.5
        np.add.at(out, rng.integers(a.shape[0], size=5), a[:1])
        out[::2] *= h
        return out

    def numbers(self, rng, a, b, h, F):
        """A loop over elements, number by number."""
        flat, other = a.reshape(a.shape[0], -1), b.reshape(a.shape[0], -1)
        found, total = [], 0.0
        for i in range(a.shape[0]):
            s = flat[i, 0] * other[i - 1, 0] + flat[i, -1] * h - other[i, -1]
            total = total + s * s
            found.append(s / (1.0 + abs(s)))
        return np.stack(found) * np.sqrt(total / a.shape[0])

    def one_ring(self, rng, a, b, h, F):
        """A loop over triangles that collects into vertices."""
        n = a.shape[0]
        flat, sums = a.reshape(n, -1), {}
        for i, j, k in (F % n).tolist():
            area = (flat[j, 0] - flat[i, 0]) * flat[k, -1] - h
            for corner in (i, j, k):
                sums[corner] = sums.get(corner, 0) + area
        return np.stack([sums.get(i, 0.0) + 0.5 * flat[i, 0] for i in range(n)])

    def block(self, rng, a, b, h, F):
        first, second = geoopt.block(a * b + h, a - b * h)
        return first[::-1] * second

    def power(self, rng, a, b, h, F):
        return (np.abs(a) + 0.2) ** float(rng.choice([2, 3, -1, 0.5, -1.5, 0.3])) / (1.0 + b**2)

    def one_after_another(self, rng, a, b, h, F):
        both = a * b
        parts = [both, a + b, both - h][: rng.integers(2, 4)]
        return np.concatenate(parts) * rng.uniform(-1, 1) + np.concatenate([both + h for _ in parts])

    def turned(self, rng, a, b, h, F):
        n = a.shape[0]
        lanes = np.stack([a.reshape(n, -1)[:, -1], b.reshape(n, -1)[:, 0] * h, np.sum(a.reshape(n, -1), axis=1)])
        return (np.cos(lanes) / (1.0 + np.sum(lanes * lanes, axis=0)) + lanes[::-1]).T

    def masks(self, rng, a, b, h, F):
        a, b = a + 0.0 * b, b + 0.0 * a
        out, m = a.copy(), a > rng.uniform(-0.5, 0.5)
        out[m] = 1.0 / (1.0 + np.abs(a[m]))
        out[~m] *= h
        m &= b < 0.3
        out[m] -= np.minimum(a[m], 0.25)
        return np.divide(out, 2.0 + b, out=out, where=b > -0.5)

    def lists(self, rng, a, b, h, F):
        first, second = a.ravel()[0], b.ravel()[-1]
        rows = np.array([[first, 1.0], [h, second]]) @ [second, 0.5]
        return a * np.linalg.norm([first, h, 0.1]) + np.tanh(rows[0]) * np.sum(np.sqrt([abs(second), 2.0])) + rows[1]

    def type_tests(self, rng, a, b, h, F):
        assert isinstance(a, np.ndarray) and isinstance(h, float) and np.isscalar(h)
        total = a.sum()
        assert isinstance(total, (float, np.floating)) and not isinstance(total, np.ndarray)
        return b * (max(total, 0.1) if np.ndim(total) == 0 else h)

    def early_exit(self, rng, a, b, h, F):
        """A branch, and a loop that ends by one."""
        scale, root = np.abs(a).mean() + 0.5, 1.0
        if np.any(b > rng.uniform(-0.5, 1.0)):
            return b * h - 1.0
        for _ in range(2):
            change = (root * root - scale) / (2.0 * root)
            root = root - change
            if abs(change) < 0.05:
                break
        return b / root


def _alike(a, b):
    if a.ndim == b.ndim:
        return a, b
    return (a[:, None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)


@st.composite
def options(draw):
    return geoopt.Options(
        threads=draw(st.sampled_from([1, 3])),
        t_ref=draw(st.sampled_from([0.5, 2.0, 1000.0])),
        t_complexity=draw(st.sampled_from([0, 4, 1000])),
        unrolled_terms=draw(st.sampled_from([0, 3, 10])),
        blocks=draw(st.booleans()),
        without=frozenset(draw(st.sets(st.sampled_from(geoopt.options.FAMILIES + geoopt.options.SWITCHES)))),
        assume=frozenset(draw(st.sets(st.sampled_from(geoopt.options.ASSUMPTIONS)))),
        strict=draw(st.booleans()),
        assembly=draw(st.sampled_from(geoopt.options.ASSEMBLIES)),
        lanes=draw(st.sampled_from([0, 0, 2])),
    )


PROGRAMS = dict(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 8),
    n=st.integers(1, 20),
    dtype=st.sampled_from([np.float64, np.float32]),
    options=options(),
)


def check(device, seed, length, n, dtype, options):
    rng = np.random.default_rng(seed)
    F = rng.integers(0, n, (int(rng.integers(0, 2 * n + 1)), 3))
    inputs = [rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, 3)), 0.7]
    inputs = [np.asarray(i, dtype) if isinstance(i, np.ndarray) else i for i in inputs]
    program = Choices(seed, length)
    exact = [i.astype(float) if isinstance(i, np.ndarray) else i for i in inputs]
    compiled = geoopt.compile(program, *inputs, F, device=device, dtype=dtype, options=options)
    for got, want in zip(compiled(*inputs), program(*exact, F), strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=0, atol=scale * (1e-10 if dtype == np.float64 else 3e-3))


@given(**PROGRAMS)
def test_compiled_equals_numpy(**choices):
    check("cpu", **choices)


@needs_cuda_on_host
@settings(max_examples=settings.default.max_examples // 4)  # a C++ compiler takes its time
@given(**PROGRAMS)
def test_as_cuda_equals_numpy(**choices):
    if choices["options"].assembly == "scatter":  # of the CPU
        choices["options"] = replace(choices["options"], assembly="auto")
    check("cuda-on-host", **choices)
