"""Cases for `test_array_functions`: rearranging, choices, elementwise functions.

The arguments v (5,), x (5, 3) and t (2, 3, 4) are symbolic; everything else in a case is known while tracing.
"""

from __future__ import annotations

import numpy as np

from geoopt.ops import BY_UFUNC

RNG = np.random.default_rng(5)
V = RNG.uniform(-1.5, 1.5, 5)  # a vector
X = RNG.uniform(0.5, 1.5, (5, 3))  # positions of mesh vertices
T = RNG.uniform(0.5, 1.5, (2, 3, 4))
S = RNG.uniform(0.5, 1.5, (3, 6, 6)) + 2 * np.eye(6)  # matrices
H = 0.7
C = RNG.uniform(0.5, 1.5, (3, 4))  # constants
MASK = X > 1.0
F = RNG.integers(0, 5, (7, 3))

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
    "swapaxes": lambda v, x, t: (np.swapaxes(t, 0, -1), t.swapaxes(1, 0), t.mT, t[:, None].squeeze(1)),
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
        np.reshape(t, (4, -1), order="F"),
        x.reshape(3, 5, order="F"),
        t.T.reshape((-1,), order="F"),
    ),
    "ravel": lambda v, x, t: (
        np.ravel(t),
        np.ravel(x.T, order="C"),
        x.flatten(),
        np.ravel(t, "F"),
        x.ravel(order="F"),
        x.flatten("F"),
        x.copy(order="F").ravel(),
        np.copy(x, order="F") + np.zeros_like(x, order="F") + np.asfortranarray(x),
    ),
    "squeeze": lambda v, x, t: (np.squeeze(x[None, :, :1]), np.squeeze(x[None, :, :1], 0), np.squeeze(v, ())),
    "expand_dims": lambda v, x, t: (np.expand_dims(x, 1), np.expand_dims(x, (0, -1)), np.expand_dims(v[F], 0)),
    "broadcast_to": lambda v, x, t: (np.broadcast_to(v[:, None], (2, 5, 3)), np.broadcast_to(v[0], 4)),
    "broadcast_arrays": lambda v, x, t: (
        np.broadcast_arrays(v[:, None], x, 1.0),
        x[np.broadcast_arrays(v[:3], np.arange(3))[1], 0],  # integers stay structure
    ),
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
    "copy": lambda v, x, t: (np.copy(x), x.copy(), np.array(t.tolist()), x.item(4) + x.item(1, 2) + v[:1].item()),
    "astype": lambda v, x, t: (np.astype(x, np.float64), x.astype(float)),
    "zeros_like": lambda v, x, t: (np.zeros_like(x) + x, np.zeros_like(x, shape=(5, 1)) - v[:, None]),
    "ones_like": lambda v, x, t: np.ones_like(x, dtype=float) * x,
    "empty_like": lambda v, x, t: _filled(np.empty_like(x), x),
    "full_like": lambda v, x, t: (
        np.full_like(x, 3.0) * x,
        np.full_like(x, v[0]),
        np.full_like(x, v[:3], shape=(2, 3)),
    ),
    "shape": lambda v, x, t: x * np.shape(x)[0],
    "ndim": lambda v, x, t: x * np.ndim(x),
    "size": lambda v, x, t: x * np.size(x) + np.size(t, 1) + x.size,
    "real": lambda v, x, t: (np.real(x), x.real),
    "imag": lambda v, x, t: (np.imag(x) + x, v.imag + v),
    "real_if_close": lambda v, x, t: np.real_if_close(x),
    "isreal": lambda v, x, t: (x[np.isreal(x)], x[~np.iscomplex(x)]),
    "indices_from": lambda v, x, t: (
        x[:3][np.tril_indices_from(x[:3])],
        x[np.triu_indices_from(x, 1)],
        x[:3][np.diag_indices_from(x[:3])],
    ),
    "fft.fftshift": lambda v, x, t: (np.fft.fftshift(v), np.fft.fftshift(x, 1), np.fft.fftshift(t)),
    "fft.ifftshift": lambda v, x, t: (np.fft.ifftshift(v), np.fft.ifftshift(t, (0, 2)), np.fft.ifftshift(x)),
    "methods of the kind": lambda v, x, t: (
        x.compress([True, False, True], 1),
        x.copy().flat[3] + x.nbytes + x.itemsize,
        list(x[::2].T.flat),
    ),
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
    "conjugate": lambda v, x, t: (np.conj(v), v.conj(), v.conjugate()),
    "fabs": lambda v, x, t: np.fabs(v),
    "round": lambda v, x, t: (np.round(x, 1), np.round(7 * v), x.round(decimals=2), np.around(900 * v, -2)),
    "fix": lambda v, x, t: (np.fix(5 * x),),
    "isclose": lambda v, x, t: (
        np.where(np.isclose(x, x + 0.01 * np.arange(x.shape[1]), atol=0.015), 1.0, 2.0),
        np.isclose(v / 0.0, np.inf, equal_nan=True) * 1.0,
        np.isclose(np.nan * v, np.nan) * 1.0 + 2.0 * np.isclose(np.nan * v, np.nan, equal_nan=True),
    ),
    "allclose": lambda v, x, t: (
        np.where(np.allclose(x, x + 1e-9), v, 0.0) + np.where(np.allclose(v, v + 0.1, atol=0.2), 1.0, v),
        np.where(np.allclose(v, -v), v, 0.0) + np.where(np.array_equal(v, v[::-1]), 1.0, v),
        np.where(np.array_equal(v, v.copy(), equal_nan=True), 2.0, v)
        + np.where(np.array_equiv(v, 0 * x.T + v), 1.0, v),
        v if not np.array_equal(v, x) and not np.array_equiv(v, x) else 0.0 * v,
    ),
    "angle": lambda v, x, t: (np.angle(v), np.angle(np.nan * v), np.angle(x, deg=True)),
    "nan_to_num": lambda v, x, t: (
        np.nan_to_num(np.log(v * 0.0) * v),
        np.nan_to_num((v - v) / 0.0, nan=7.0, posinf=1.0),
    ),
    "logaddexp": lambda v, x, t: (np.logaddexp(v[:, None], x), np.logaddexp(v, -np.inf), np.logaddexp(np.inf, v)),
    "floor_divide": lambda v, x, t: (
        v // 0.3,
        np.floor_divide(v[:, None], x),
        7.0 // x,
        np.floor_divide(v, 0.0),
        np.floor_divide(v, -np.inf),
        np.floor_divide(v / 0.0, 2.0),
        np.floor_divide(0.1 * np.arange(-20.0, 20.0) + 0.0 * v[0], 0.1),
        *divmod(v, -0.25),
        *np.divmod(1.0, x),
    ),
    "modf": lambda v, x, t: (*np.modf(3 * v), *np.modf(v / 0.0), 1.0 / np.modf(0.0 * v)[0]),
    "logaddexp2": lambda v, x, t: (np.logaddexp2(v[:, None], x), np.logaddexp2(v, -np.inf)),
    "heaviside": lambda v, x, t: (np.heaviside(v, 0.5), np.heaviside(0 * v, x[0, 0]), np.heaviside(np.nan * v, 1.0)),
    "sinc": lambda v, x, t: (np.sinc(v), np.sinc(0 * v), np.sinc(x)),
    "signs and infinities": lambda v, x, t: tuple(
        f(y) * 1.0 for f in (np.signbit, np.isposinf, np.isneginf) for y in (v, v / 0.0, -0.0 * np.abs(v))
    ),
    "degrees": lambda v, x, t: (np.degrees(v), np.rad2deg(x)),
    "radians": lambda v, x, t: (np.radians(v), np.deg2rad(x)),
    "hypot": lambda v, x, t: (np.hypot(v, 2.0), np.hypot(v[:, None], x), np.hypot([1.0, 2.0, 3.0], x)),
    "power": lambda v, x, t: (x**3, x**0.5, np.power(x, -2), np.float_power(x, 1.5), v**0, v**5),
    "outer of ufuncs": lambda v, x, t: (
        np.add.outer(v, x),
        np.multiply.outer(C, v),
        np.hypot.outer(v, v[0]),
        *(f.outer(np.abs(v), x[0]) for f, row in BY_UFUNC.items() if row.arity == 2 and not row.gives_bool),
        *(np.where(f.outer(v, V), 1.0, 0.0) for f in (np.less, np.less_equal, np.greater, np.greater_equal)),
        *(np.where(f.outer(v, V), 1.0, 0.0) for f in (np.equal, np.not_equal)),
        *(np.where(f.outer(v > 0, x < 1), 1.0, 0.0) for f in (np.logical_and, np.logical_or, np.logical_xor)),
        *(np.where(f.outer(v > 0, x < 1), 1.0, 0.0) for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)),
    ),
}


def _filled(target, value):
    target[...] = value
    return target


def _summed_at(v, x, t):
    total = np.zeros_like(x)
    np.add.at(total, F, t[0, 0, :3])
    np.subtract.at(total, (F[:, 0], F[:, 1] % 3), x[F[:, 2], 0])
    np.add.at(total, MASK, 1.0)
    np.add.at(total, slice(1, 3), t[0, 0, 0])
    return total


def _extremes_at(v, x, t):
    largest, least = np.full(x.shape, -np.inf), x.copy()
    np.maximum.at(largest, F, t[0, 0, :3])
    np.maximum.at(largest, (F[:, 0], F[:, 1] % 3), x[F[:, 2], 0])
    np.minimum.at(least, MASK, v[0])
    np.minimum.at(least, [0, 0, 0, 1, 1, 4, 0], np.sin(x[F[:, 0]]))
    return largest, least


def _copied(v, x, t):
    y = x.copy()
    np.copyto(y, v[:, None], where=MASK)
    np.put(y, [0, 4, 7], v[:2])
    return y


def _with_diagonal(v, x, t):
    y = x.copy()
    np.fill_diagonal(y, 2.0)
    return y


CHANGING = {
    "add.at": _summed_at,
    "maximum.at": _extremes_at,
    "copyto, put": _copied,
    "fill_diagonal": _with_diagonal,
    "like": lambda v, x, t: (np.zeros_like(v) - v, np.ones_like(x, dtype=int) * x, np.zeros_like(x, dtype=bool) * v[0]),
}
