"""NumPy's functions on symbolic arrays give what NumPy gives on floats."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import geoopt
from geoopt import symbolic
from geoopt.evaluate import evaluate
from geoopt.ops import BY_UFUNC
from geoopt.trace import trace

from .test_stages import arrays

RNG = np.random.default_rng(5)
V = RNG.uniform(-1.5, 1.5, 5)  # a vector
X = RNG.uniform(0.5, 1.5, (5, 3))  # positions of mesh vertices
T = RNG.uniform(0.5, 1.5, (2, 3, 4))
S = RNG.uniform(0.5, 1.5, (3, 6, 6)) + 2 * np.eye(6)  # matrices
H = 0.7
C = RNG.uniform(0.5, 1.5, (3, 4))  # constants
LONG = RNG.uniform(0.5, 1.5, (3, 70))
MASK = X > 1.0
F = RNG.integers(0, 5, (7, 3))

# what the test is about: the arguments are symbolic, everything else in a case is known while tracing
MOVING = {
    "stack": lambda v, x, t: (np.stack([x, 2 * x]), np.stack([v, v, v], axis=-1), np.stack(x, axis=1), np.stack([v])),
    "concatenate": lambda v, x, t: (
        np.concatenate([x, C[:, :3], x]),
        np.concatenate([x, v[:, None]], axis=-1),
        np.concatenate([x, t], axis=None),
        np.concatenate(t),
        np.concatenate(t, axis=1),
        np.concatenate((x,), dtype=float),
        np.concat([v, v[:0]]),
    ),
    "hstack": lambda v, x, t: (np.hstack([v, H, v]), np.hstack([x, C[:1].repeat(5, 0)]), np.hstack(x)),
    "vstack": lambda v, x, t: (np.vstack([v, v]), np.vstack([x, x[0]]), np.vstack(x)),
    "dstack": lambda v, x, t: (np.dstack([v, v]), np.dstack([x, x]), np.dstack([t, t])),
    "column_stack": lambda v, x, t: (np.column_stack([v, x, 2 * v]), np.column_stack([v, v[::-1]])),
    "block": lambda v, x, t: (
        np.block([[x[:3], C[:, :3]], [np.zeros((2, 3)), 2 * x[:2]]]),
        np.block([v, 1.0, v]),
        np.block([[v[0], v[1]], [0.0, 1.0]]),
    ),
    "append": lambda v, x, t: (np.append(v, 1.0), np.append(v, x), np.append(x, x[:1], axis=0)),
    "split": lambda v, x, t: (np.split(v, 5), np.split(t, 2, axis=2), np.split(v, [1, 1, 4]), np.split(v[F[:, 0]], 7)),
    "array_split": lambda v, x, t: (np.array_split(v, 3), np.array_split(x, [2, 9], axis=1)),
    "hsplit": lambda v, x, t: (np.hsplit(x, 3), np.hsplit(v, [2])),
    "vsplit": lambda v, x, t: np.vsplit(x, [1, 3]),
    "dsplit": lambda v, x, t: np.dsplit(t, 2),
    "unstack": lambda v, x, t: (np.unstack(x), np.unstack(t, axis=-1), np.unstack(v)),
    "moveaxis": lambda v, x, t: (np.moveaxis(t, 0, -1), np.moveaxis(t, (0, 1), (-1, 0)), np.moveaxis(t, [2], [0])),
    "rollaxis": lambda v, x, t: (np.rollaxis(t, 2), np.rollaxis(t, 0, 3), np.rollaxis(t, -1, 1)),
    "swapaxes": lambda v, x, t: (np.swapaxes(t, 0, -1), t.swapaxes(1, 0)),
    "transpose": lambda v, x, t: (
        np.transpose(x),
        np.transpose(t, (1, 2, 0)),
        np.permute_dims(t, (-1, 0, 1)),
        np.transpose(a=x, axes=None),
        np.transpose(x[F[:, 0]], [1, 0]),
    ),
    "matrix_transpose": lambda v, x, t: (np.matrix_transpose(t), np.linalg.matrix_transpose(x)),
    "reshape": lambda v, x, t: (
        np.reshape(t, (4, -1)),
        np.reshape(t, shape=24, copy=True),
        np.reshape(x, [3, 5], order="C"),
        np.reshape(t.T, -1),
        np.reshape(x[F], (7, 9)),
        np.reshape(x, np.array([15])),
    ),
    "ravel": lambda v, x, t: (np.ravel(t), np.ravel(x.T, order="C"), x.flatten()),
    "squeeze": lambda v, x, t: (np.squeeze(x[None, :, :1]), np.squeeze(x[None, :, :1], 0), np.squeeze(v, ())),
    "expand_dims": lambda v, x, t: (np.expand_dims(x, 1), np.expand_dims(x, (0, -1)), np.expand_dims(v[F], 0)),
    "broadcast_to": lambda v, x, t: (np.broadcast_to(v[:, None], (2, 5, 3)), np.broadcast_to(v[0], 4)),
    "broadcast_arrays": lambda v, x, t: np.broadcast_arrays(v[:, None], x, 1.0),
    "atleast_1d": lambda v, x, t: (np.atleast_1d(v[0]), np.atleast_1d(v, 2.0), np.atleast_1d(x)),
    "atleast_2d": lambda v, x, t: (np.atleast_2d(v[0]), np.atleast_2d(v), np.atleast_2d(x, t)),
    "atleast_3d": lambda v, x, t: (
        np.atleast_3d(v[0]),
        np.atleast_3d(v),
        np.atleast_3d(x),
        np.atleast_3d(t[..., None]),
    ),
    "repeat": lambda v, x, t: (
        np.repeat(v, 2),
        np.repeat(x, [0, 1, 2, 0, 3], axis=0),
        np.repeat(x, 2),
        t.repeat(np.array([1, 2, 1]), axis=-2),
    ),
    "tile": lambda v, x, t: (np.tile(v, 3), np.tile(x, (2, 1, 2)), np.tile(v, (2, 2)), np.tile(t, 2), np.tile(v[0], 3)),
    "resize": lambda v, x, t: np.resize(x, (2, 4)),
    "roll": lambda v, x, t: (
        np.roll(v, 2),
        np.roll(x, -4),
        np.roll(x, (1, 2), axis=(0, 1)),
        np.roll(t, 1, axis=(1, 2)),
        np.roll(x, 7, axis=-1),
        np.roll(x, (1, 2), axis=0),
    ),
    "flip": lambda v, x, t: (np.flip(t), np.flip(t, 1), np.flip(t, (0, -1))),
    "fliplr": lambda v, x, t: np.fliplr(x),
    "flipud": lambda v, x, t: (np.flipud(x), np.flipud(v[F])),
    "rot90": lambda v, x, t: (np.rot90(x), np.rot90(t, 2, (1, 2)), np.rot90(x, k=-1), np.rot90(x, 4)),
    "take": lambda v, x, t: (
        np.take(x, F),
        np.take(x, [[0, -1], [2, 1]], axis=-1),
        np.take(v, 3),
        x.take([1, 2], 0),
        np.take(v, [7, -9], mode="wrap"),
        np.take(x, [9], axis=1, mode="clip"),
    ),
    "take_along_axis": lambda v, x, t: (
        np.take_along_axis(x, np.argsort(X, axis=1), axis=1),
        np.take_along_axis(x, F[:5, :1], axis=0),
        np.take_along_axis(v, np.array([1, 1]), None),
    ),
    "diagonal": lambda v, x, t: (
        np.diagonal(t),
        np.diagonal(t, 1, 1, 2),
        t.diagonal(-1, 2, 0),
        np.diagonal(x[F], axis1=0, axis2=2),
        np.diagonal(x, 7),
    ),
    "linalg.diagonal": lambda v, x, t: (np.linalg.diagonal(t), np.linalg.diagonal(t, offset=-1)),
    "diag": lambda v, x, t: (np.diag(v), np.diag(v, -2), np.diag(x, 1), np.diag(x)),
    "diagflat": lambda v, x, t: (np.diagflat(x), np.diagflat(v, 1)),
    "tril": lambda v, x, t: (np.tril(t), np.tril(x, 1), np.tril(v)),
    "triu": lambda v, x, t: (np.triu(t, -1), np.triu(x)),
    "insert": lambda v, x, t: (
        np.insert(v, 2, 9.0),
        np.insert(v, [1, 3], v[:2]),
        np.insert(x, 1, v[:3], axis=0),
        np.insert(x, [0, 2], 5.0, axis=1),
        np.insert(x, 1, v, axis=1),
        np.insert(x, slice(0, 2), 1.0),
        np.insert(C, 1, v[0]),
    ),
    "delete": lambda v, x, t: (
        np.delete(v, 2),
        np.delete(x, [0, -1], axis=0),
        np.delete(x, slice(1, 9, 2)),
        np.delete(t, 1, 2),
    ),
    "pad": lambda v, x, t: (
        np.pad(v, 2),
        np.pad(x, ((1, 0), (2, 3)), constant_values=((1, 2), (3, 4))),
        np.pad(x, 1, constant_values=v[0]),
        np.pad(v, (3, 1), "edge"),
        np.pad(x, ((6, 0), (0, 4)), "wrap"),
        np.pad(x, 2, mode="reflect"),
        np.pad(v, 7, mode="symmetric"),
    ),
    "meshgrid": lambda v, x, t: (
        np.meshgrid(v, v[:2]),
        np.meshgrid(v, C[0], v[:2], indexing="ij"),
        np.meshgrid(v, v[:3], sparse=True),
        np.meshgrid(v),
        np.meshgrid(v, 1.0, v[:2]),
    ),
    "compress": lambda v, x, t: (
        np.compress([True, False, True], x, axis=0),
        np.compress(MASK[:, 0], v),
        np.compress([1, 0, 1], t),
    ),
    "extract": lambda v, x, t: (np.extract(MASK, x), np.extract(np.arange(5) % 2 == 0, v)),
    "copy": lambda v, x, t: (np.copy(x), x.copy()),
    "astype": lambda v, x, t: (np.astype(x, np.float64), x.astype(float)),
    "zeros_like": lambda v, x, t: (np.zeros_like(x) + x, np.zeros_like(x, shape=(5, 1)) - v[:, None]),
    "ones_like": lambda v, x, t: np.ones_like(x, dtype=float) * x,
    "empty_like": lambda v, x, t: np.empty_like(x) * 0.0 + x,
    "full_like": lambda v, x, t: (
        np.full_like(x, 3.0) * x,
        np.full_like(x, v[0]),
        np.full_like(x, v[:3], shape=(2, 3)),
    ),
    "shape": lambda v, x, t: x * np.shape(x)[0],
    "ndim": lambda v, x, t: x * np.ndim(x),
    "size": lambda v, x, t: x * np.size(x) + np.size(t, 1) + x.size,
    "real": lambda v, x, t: (np.real(x), x.real),
}

CHOICES = {
    "where": lambda v, x, t: (
        np.where(x > 1.0, x, v[:, None]),
        np.where(MASK, x, 0.0),
        np.where(MASK, H, x),
        np.where(MASK[:, :1], x, v[:, None]),
        np.where(np.zeros(3, bool), 1.0, x),
    ),
    "select": lambda v, x, t: (
        np.select([v < -0.5, v < 0.5], [v, 2 * v], 7.0),
        np.select([MASK, x < 1.2], [x, -x]),
        np.select([MASK, ~MASK], [x, 1.0], default=v[0]),
    ),
    "choose": lambda v, x, t: (
        np.choose([0, 1, 1, 0, 1], [v, x[:, 0]]),
        np.choose(F[:5] % 2, (x, 2.0)),
        np.choose([0, 3, -1], x, mode="clip"),
    ),
    "piecewise": lambda v, x, t: (
        np.piecewise(v, [V < 0, V >= 0.5], [lambda a: -a, lambda a: a * a]),
        np.piecewise(v, [V < 0], [1.0, lambda a: 2 * a]),
        np.piecewise(v, [v < 0, v < 0.5], [lambda a, b: b - a, 2.0, lambda a, b: a * b], 3.0),
        np.piecewise(x, [MASK], [lambda a, by: a * by, -1.0], by=2.0),
        np.piecewise(v, MASK[:, 0], [lambda a: a - 1, lambda a: 0 * a]),
        np.piecewise(v, v < 0, [1.0, 2.0]),
        np.piecewise(v[0], [v[0] < 9.0], [5.0, 4.0]),
    ),
    "clip": lambda v, x, t: (
        np.clip(v, -0.5, 0.5),
        np.clip(v, min=0.0),
        np.clip(v, None, v[0]),
        v.clip(max=0.3),
        x.clip(0.7),
    ),
}

ELEMENTWISE = {
    "square": lambda v, x, t: np.square(v),
    "reciprocal": lambda v, x, t: np.reciprocal(x),
    "positive": lambda v, x, t: np.positive(v),
    "conjugate": lambda v, x, t: (np.conj(v), v.conj()),
    "fabs": lambda v, x, t: np.fabs(v),
    "degrees": lambda v, x, t: (np.degrees(v), np.rad2deg(x)),
    "radians": lambda v, x, t: (np.radians(v), np.deg2rad(x)),
    "hypot": lambda v, x, t: (np.hypot(v, 2.0), np.hypot(v[:, None], x), np.hypot([1.0, 2.0, 3.0], x)),
    "power": lambda v, x, t: (x**3, x**0.5, np.power(x, -2), np.float_power(x, 1.5), v**0, v**5),
    "linspace": lambda v, x, t: (
        np.linspace(v[0], v[1], 4),
        np.linspace(x, 1.0, 3, axis=1),
        np.linspace(0.0, v, 5, endpoint=False, dtype=float),
        np.linspace(x, v[:3], num=2, retstep=True, axis=-1),
        np.linspace(v, 1.0, 1),
    ),
    "polyval": lambda v, x, t: (
        np.polyval(v, x),
        np.polyval([1.0, 2.0, 3.0], v),
        np.polyval(v, C),
        np.polyval([2.0], v),
    ),
    "outer of ufuncs": lambda v, x, t: (
        np.add.outer(v, x),
        np.multiply.outer(C, v),
        np.hypot.outer(v, v[0]),
        *(f.outer(v, x[0]) for f, row in BY_UFUNC.items() if row.arity == 2 and not row.gives_bool),
        *(np.where(f.outer(v, V), 1.0, 0.0) for f, row in BY_UFUNC.items() if row.arity == 2 and row.gives_bool),
    ),
}

SUMS = {
    "sum": lambda v, x, t: (
        np.sum(t),
        np.sum(t, axis=(0, 2)),
        np.sum(t, 1, None, None, True),
        np.sum(t, axis=(-1, 0), keepdims=True, initial=2.0),
        np.sum(x, axis=1, where=MASK),
        np.sum(x, where=[True, False, True], dtype=np.float64),
        np.sum(x, axis=()),
        x[:0].sum(axis=0),
        x.sum(0),
        x.sum(axis=-1, keepdims=True),
    ),
    "prod": lambda v, x, t: (
        np.prod(t, axis=(0, 2)),
        np.prod(v),
        t.prod(1, keepdims=True),
        np.prod(x[:0], 0),
        np.prod(x, 1, initial=2.0, where=MASK),
    ),
    "mean": lambda v, x, t: (np.mean(t), np.mean(t, (0, 1)), x.mean(axis=0, keepdims=True), np.mean(x, ())),
    "average": lambda v, x, t: (
        np.average(x),
        np.average(x, axis=0, weights=v + 3),
        np.average(x, weights=X),
        np.average(t, axis=(2, 0), weights=C.reshape(4, 3)[:, :2] * v[0] ** 2),
        np.average(C, axis=0, weights=v[:3] + 3, returned=True),
        np.average(x, 1, returned=True, keepdims=True),
    ),
    "var": lambda v, x, t: (
        np.var(x),
        x.var(0, ddof=1),
        np.var(t, axis=(0, 2), keepdims=True),
        np.var(x, 1, mean=np.mean(x, 1, keepdims=True)),
        np.var(x, 0, correction=1.5),
    ),
    "std": lambda v, x, t: (np.std(x), x.std(axis=1, ddof=1), np.std(t, (0, 1), keepdims=True)),
    "max": lambda v, x, t: (
        np.max(v),
        np.amax(t, axis=(0, -1)),
        x.max(1, keepdims=True),
        np.max(x, 0, initial=1.0, where=MASK),
        np.max(v[0]),
    ),
    "min": lambda v, x, t: (np.min(v), np.amin(t, axis=(1, 2)), x.min(0), np.min(v, initial=-9.0), np.min(x, ())),
    "ptp": lambda v, x, t: (np.ptp(v), np.ptp(t, axis=1, keepdims=True), np.ptp(x, (0, 1))),
    "cumsum": lambda v, x, t: (np.cumsum(x), np.cumsum(t, axis=1), x.cumsum(-1), np.cumsum(v[:0])),
    "cumprod": lambda v, x, t: (np.cumprod(v), np.cumprod(x, 1), x.cumprod(axis=0)),
    "cumulative_sum": lambda v, x, t: (np.cumulative_sum(v, include_initial=True), np.cumulative_sum(x, axis=1)),
    "cumulative_prod": lambda v, x, t: (np.cumulative_prod(v), np.cumulative_prod(t, axis=1, include_initial=True)),
    "diff": lambda v, x, t: (
        np.diff(v),
        np.diff(t, 2, axis=1),
        np.diff(v, prepend=0.0, append=v[:2]),
        np.diff(x, axis=0, append=C[:2, :3]),
        np.diff(v, n=0),
        np.diff(C, prepend=v[0]),
        np.diff(v, 7),
    ),
    "ediff1d": lambda v, x, t: (np.ediff1d(x), np.ediff1d(v, to_end=[1.0, 2.0], to_begin=v[0]), np.ediff1d(v[:1])),
    "bincount": lambda v, x, t: (
        np.bincount(F.ravel(), weights=np.tile(v, 5)[:21]),
        np.bincount([7, 0, 7, 1, 0], v, minlength=12),
        np.bincount(np.zeros(0, int), v[:0], 2),
    ),
    "add.reduce": lambda v, x, t: (
        np.add.reduce(x),
        np.add.reduce(t, (0, 2), keepdims=True),
        np.add.reduce(x, None, initial=1.0),
    ),
    "multiply.reduce": lambda v, x, t: (np.multiply.reduce(x, axis=1), np.multiply.reduce(x)),
    "maximum.reduce": lambda v, x, t: (np.maximum.reduce(x, axis=1), np.maximum.reduce(v, initial=0.0)),
    "minimum.reduce": lambda v, x, t: (
        np.minimum.reduce(np.stack([v, v[::-1], x[:, 0]])),
        np.minimum.reduce(t, axis=(0, 1)),
    ),
    "add.reduceat": lambda v, x, t: (
        np.add.reduceat(v, [0, 2, 3]),
        np.add.reduceat(x, [1, 3, 2, 2, 0]),
        np.add.reduceat(t, [0, 2], axis=2),
        np.add.reduceat(t, [2, 1], 1),
        np.add.reduceat(v, np.zeros(0, int)),
    ),
    "accumulate": lambda v, x, t: (
        np.add.accumulate(x),
        np.multiply.accumulate(x, axis=1),
        np.maximum.accumulate(t, -1),
        np.minimum.accumulate(v),
    ),
}

PRODUCTS = {
    "einsum": lambda v, x, t: (
        np.einsum("ni,ni->n", x, 2 * x),
        np.einsum("ni,nij,nj->n", x[:2], t[..., :3], x[2:4]),
        np.einsum("ij,jk", x, C),
        np.einsum("ba", x),
        np.einsum("i->", v),
        np.einsum("...i,i->...", t, C[0]),
        np.einsum("i...,...->...i", t, C),
        np.einsum("i...j,...k", t, x[:3]),
        np.einsum("...,...", x, v[:3]),
        np.einsum("ii->i", x[:3]),
        np.einsum("ii", x[:3] * H),
        np.einsum("iji->ji", t[:, :, :2]),
        np.einsum("...ii->...i", t[:, :, :3]),
        np.einsum("iii", t[:2, :2, :2]),
        np.einsum(",ij , ->ji", 2.0, x, v[0]),
        np.einsum("ij,kl->", x, t[0]),
        np.einsum("ij,ij->ij", x, v[:, None]),
        np.einsum("abc,bd,ce,a->de", t, C, x[:4, :2], v[:2]),
        np.einsum("i,i,i,i->i", v, v, v, V),
        np.einsum("ij,jk,kl,lm->im", x, t[0], x[:4], x[:3]),
        np.einsum(x, [0, 1], C, [1, 2], [2, 0]),
        np.einsum(t, [Ellipsis, 1], C[0], [1]),
        np.einsum("ij->ij", x),
    ),
    "matmul": lambda v, x, t: (
        x @ t[0],
        t @ C.T,
        C[:, :3] @ x.T,
        v @ x,
        x.T @ v,
        v @ v,
        np.matmul(t, C.T.reshape(4, 3)),
        v[:3] @ t,
        t @ C[0],
        [1.0, 2.0, 3.0] @ x.T,
    ),
    "linalg.matmul": lambda v, x, t: np.linalg.matmul(x, C),
    "dot": lambda v, x, t: (
        np.dot(v, v),
        np.dot(x, C),
        x.dot(t[0]),
        np.dot(t, x[:4]),
        np.dot(x, t),
        np.dot(t, C[0]),
        np.dot(2.0, x),
        np.dot(C.T, t),
        np.dot(v[:3], t),
    ),
    "vdot": lambda v, x, t: (np.vdot(x, X), np.vdot(v, v)),
    "vecdot": lambda v, x, t: (np.vecdot(x, X), np.vecdot(v, v), np.vecdot(t, C), np.vecdot(x, v[:, None], axis=0)),
    "linalg.vecdot": lambda v, x, t: (np.linalg.vecdot(x, x), np.linalg.vecdot(t, t[::-1], axis=1)),
    "inner": lambda v, x, t: (np.inner(v, v), np.inner(t, C), np.inner(x, x), np.inner(2.0, x)),
    "tensordot": lambda v, x, t: (
        np.tensordot(t, C),
        np.tensordot(t, t, 3),
        np.tensordot(v, x, 0),
        np.tensordot(x, t, axes=([1], [1])),
        np.tensordot(t, C, axes=((2, 1), (1, 0))),
        np.tensordot(x, x, (0, 0)),
    ),
    "linalg.tensordot": lambda v, x, t: np.linalg.tensordot(x, C, axes=1),
    "outer": lambda v, x, t: (np.outer(v, x), np.outer(C, v), np.outer(2.0, v)),
    "linalg.outer": lambda v, x, t: np.linalg.outer(v, C[0]),
    "kron": lambda v, x, t: (np.kron(v, v), np.kron(x, C), np.kron(t, x[:2]), np.kron(C[0], x), np.kron(2.0, x)),
    "cross": lambda v, x, t: (
        np.cross(x, x[::-1] * x),
        np.cross(t, C[:, 0], axisa=1),
        np.cross(t, t[::-1] * 2, axis=1),
        np.cross(x.T, x[::-1], axisa=0, axisc=0),
        np.cross(x[:, :2], x[:, 1:]),
        np.cross(x[:, :2], x),
        np.cross(x, v[:2]),
        np.cross(v[:3], x),
    ),
    "linalg.cross": lambda v, x, t: (np.linalg.cross(x, v[:3]), np.linalg.cross(t, t[::-1], axis=1)),
    "trace": lambda v, x, t: (
        np.trace(x),
        np.trace(t, 1, 1, 2),
        t.trace(axis1=-1, axis2=0),
        np.trace(x, offset=-1, dtype=float),
    ),
    "linalg.trace": lambda v, x, t: (np.linalg.trace(t), np.linalg.trace(t, offset=1)),
}


def matrix(x, n):
    """Well-conditioned matrices of any size, from six by six."""
    return x[:, :n, :n]


def definite(s, n):
    return matrix(s, n) @ np.swapaxes(matrix(s, n), 1, 2)


LINEAR_ALGEBRA = {
    "linalg.norm": lambda v, x, t: (
        np.linalg.norm(v),
        np.linalg.norm(t),
        np.linalg.norm(x, axis=1),
        np.linalg.norm(x, axis=(0, 1), keepdims=True),
        np.linalg.norm(v, 1),
        np.linalg.norm(v, np.inf),
        np.linalg.norm(x, -np.inf, axis=0),
        np.linalg.norm(v, 0),
        np.linalg.norm(v, 2),
        np.linalg.norm(x, "fro"),
        np.linalg.norm(t, "fro", axis=(2, 0)),
        np.linalg.norm(x, 1),
        np.linalg.norm(t, -1, axis=(1, 2)),
        np.linalg.norm(t, np.inf, axis=(2, 1), keepdims=True),
        np.linalg.norm(x, -np.inf),
    ),
    "linalg.vector_norm": lambda v, x, t: (
        np.linalg.vector_norm(x),
        np.linalg.vector_norm(t, axis=(0, 2), keepdims=True),
        np.linalg.vector_norm(t, axis=(0, 2), ord=1),
        np.linalg.vector_norm(v, ord=np.inf),
    ),
    "linalg.matrix_norm": lambda v, x, t: (np.linalg.matrix_norm(t), np.linalg.matrix_norm(t, keepdims=True, ord=1)),
    "linalg.det": lambda s: [np.linalg.det(matrix(s, n)) for n in range(1, 7)],
    "linalg.inv": lambda s: [np.linalg.inv(matrix(s, n)) for n in range(1, 7)],
    "linalg.solve": lambda s, x: (
        *(np.linalg.solve(matrix(s, n), s[:, :n, :2]) for n in range(1, 7)),
        np.linalg.solve(s[:, :3, :3], x[0]),
        np.linalg.solve(s[0], S[1]),
        np.linalg.solve(S[:, :3, :3], x[:3]),
    ),
    "linalg.cholesky": lambda s: (
        *(np.linalg.cholesky(definite(s, n)) for n in range(1, 7)),
        np.linalg.cholesky(definite(s, 3), upper=True),
    ),
    "linalg.matrix_power": lambda s: [np.linalg.matrix_power(s[:, :3, :3] / 2, n) for n in (0, 1, 2, 5, -1, -2)],
    "linalg.multi_dot": lambda v, x, t: (
        np.linalg.multi_dot([x.T, x, t[0]]),
        np.linalg.multi_dot([v, x, C, C.T, x[0]]),
        np.linalg.multi_dot([x, C]),
        np.linalg.multi_dot([v[:3], C]),
    ),
}

TABLES = {
    "moving": MOVING,
    "choices": CHOICES,
    "elementwise": ELEMENTWISE,
    "sums": SUMS,
    "products": PRODUCTS,
    "linear algebra": LINEAR_ALGEBRA,
}
CASES = {name: case for table in TABLES.values() for name, case in table.items()}
VALUES = {"v": V, "x": X, "t": T, "s": S}


def running(*cases):
    """The cases as one function of all arguments."""

    def function(v, x, t, s):
        given = {"v": v, "x": x, "t": t, "s": s}
        return tuple(case(*(given[name] for name in inspect.signature(case).parameters)) for case in cases)

    return function


def assert_same(got, want):
    got, want = arrays(got), arrays(want)
    assert [g.shape for g in got] == [w.shape for w in want]
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-11, err_msg=f"result {i}")


@pytest.mark.parametrize("name", CASES)
def test_traced(name):
    function = running(CASES[name])
    traced, signature = trace(function, tuple(VALUES.values()))
    traced.check()
    assert_same(signature.rebuild(evaluate(traced, list(VALUES.values()))), function(**VALUES))


@pytest.mark.parametrize("table", TABLES)
def test_compiled(table):
    function = running(*TABLES[table].values())
    program = geoopt.compile(function, **VALUES)
    others = {name: 0.9 * value + 0.01 for name, value in VALUES.items()}
    assert_same(program(**others), function(**others))


@pytest.mark.parametrize("name", MOVING)
def test_moving_data_makes_no_node(name):
    if name in ("shape", "ndim", "size"):
        return
    graph = trace(running(lambda v, x, t: MOVING[name](v, x, t)), tuple(VALUES.values()))[0].graph
    assert {n.op for n in graph.nodes} <= {"variable", "constant", "add", "subtract", "multiply"}


class Recorder(dict):
    """A table that knows which of its entries were asked for."""

    def __init__(self, table):
        super().__init__(table)
        self.used = set()

    def __getitem__(self, key):
        self.used.add(key)
        return super().__getitem__(key)


def test_every_function_has_a_case(monkeypatch):
    tables = [Recorder(t) for t in (symbolic.FUNCTIONS, symbolic.UFUNCS, symbolic.UFUNC_METHODS)]
    for name, table in zip(("FUNCTIONS", "UFUNCS", "UFUNC_METHODS"), tables, strict=True):
        monkeypatch.setattr(symbolic, name, table)
    trace(running(*CASES.values()), tuple(VALUES.values()))
    for table in tables:
        assert not table.keys() - table.used
