"""Indexing of views over ids: what stands between brackets makes another view."""

from __future__ import annotations

from typing import Self

import numpy as np

from .gathers import taken
from .indexing import normalised, wrapped
from .spacing import id_dtype

INTEGERS = frozenset({int, *(getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))})


class Indexed:
    """How `ids.Ids` are indexed, by NumPy's rules."""

    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]
    base: np.ndarray | None
    ndim: int
    highest: int

    def __init__(self, shape: tuple[int, ...], offset: int, strides: tuple[int, ...], base: np.ndarray | None = None):
        raise NotImplementedError

    def _folded(self) -> Self:
        raise NotImplementedError

    def _evened(self) -> Self:
        raise NotImplementedError

    def _phantoms(self) -> tuple[np.ndarray, np.ndarray | None]:
        raise NotImplementedError

    def _from_phantoms(self, affine: np.ndarray, base: np.ndarray | None) -> Self:
        raise NotImplementedError

    def entry(self, keys: tuple) -> int:
        """The id at integers, one for each axis; -1 where they are none, or out of bounds."""
        if self.base is None and len(keys) == 2:  # by far the most
            i, j = keys
            n, m = self.shape
            if type(i) is int and type(j) is int and 0 <= i < n and 0 <= j < m:
                return self.offset + i * self.strides[0] + j * self.strides[1]
        scalar, places = self.offset, []
        for k, length, stride in zip(keys, self.shape, self.strides, strict=True):
            if type(k) is not int:
                if type(k) not in INTEGERS:
                    return -1
                k = int(k)
            if k < 0:
                k += length
            if not 0 <= k < length:
                return -1
            scalar += stride * k
            places.append(k)
        if self.base is not None:
            scalar += int(self.base[tuple(k if n > 1 else 0 for k, n in zip(places, self.base.shape, strict=True))])
        return scalar

    def basic(self, keys: tuple) -> Self | None:
        """``self[keys]`` for integers, slices, new axes and an ellipsis, without NumPy's help; None for other keys."""
        missing, ellipses = len(self.shape), 0
        for k in keys:
            if type(k) is int or type(k) is slice or type(k) in INTEGERS:
                missing -= 1
            elif k is Ellipsis:
                ellipses += 1
            elif k is not None:
                return None
        if missing < 0 or ellipses > 1:
            return None
        if ellipses:
            at = next(i for i, k in enumerate(keys) if k is Ellipsis)
            keys = (*keys[:at], *[slice(None)] * missing, *keys[at + 1 :])
        else:
            keys = (*keys, *[slice(None)] * missing)
        return self._sliced(keys)

    def _sliced(self, keys: tuple) -> Self | None:
        """The same for an integer or a slice for each axis, and new axes; None where an integer is out of bounds."""
        offset, axis = self.offset, 0
        shape, strides, of_base = [], [], []
        for k in keys:
            if k is None:
                shape.append(1)
                strides.append(0)
                of_base.append(None)
                continue
            length, stride = self.shape[axis], self.strides[axis]
            varies = self.base is not None and self.base.shape[axis] > 1
            if type(k) is slice:
                first, end, step = k.indices(length)
                shape.append(len(range(first, end, step)))
                strides.append(step * stride)
                of_base.append(k if varies else slice(None))
            else:
                first = int(k) + length if k < 0 else int(k)
                if not 0 <= first < length:
                    return None
                of_base.append(first if varies else 0)
            offset += first * stride
            axis += 1
        if 0 in shape:
            return type(self)(tuple(shape), 0, (0,) * len(shape))
        base = None if self.base is None else np.asarray(self.base[tuple(of_base)])
        return type(self)(tuple(shape), offset, tuple(strides), base)._folded()

    def __getitem__(self, key: object) -> Self:
        """NumPy indexing: slices, integers, new axes, integer and boolean arrays."""
        parts = key if type(key) is tuple else (key,)
        found = self.basic(parts)
        if found is not None:
            return found
        first = parts[0]
        if type(first) is np.ndarray and first.ndim and first.dtype.kind in "iu":  # such as V[F]
            rest = self.basic((slice(None), *parts[1:]))
            if rest is not None:
                return rest._take({0: wrapped(first, rest.shape[0], 0)})
        if isinstance(key, (bool, np.bool_)) or (isinstance(key, np.ndarray) and key.dtype == bool and not key.ndim):
            return self[None][: int(key)]
        keys, advanced = normalised(key, self.shape)
        affine, base = self._phantoms()
        basic = [slice(None) if is_advanced else k for k, is_advanced in zip(keys, advanced, strict=True)]
        basic = (*basic, Ellipsis)  # so that NumPy gives a view, never an element of the phantom
        view = self._from_phantoms(affine[basic], None if base is None else base[basic])
        if not any(advanced):
            return view
        indices: dict[int, np.ndarray] = {}
        axis = 0
        for k, is_advanced in zip(keys, advanced, strict=True):
            if is_advanced:
                indices[axis] = k
            axis += not isinstance(k, int)
        return view._take({a: wrapped(i, view.shape[a], a) for a, i in indices.items()})

    def picked(self, places: np.ndarray) -> Self:
        """``self[..., places]`` for valid places (k,), none of them negative."""
        if self.base is not None:
            return self[..., places]
        *strides, last = self.strides
        base = (last * places).reshape((1,) * (self.ndim - 1) + places.shape)
        return type(self)((*self.shape[:-1], len(places)), self.offset, (*strides, 0), base)

    def _take(self, indices: dict[int, np.ndarray]) -> Self:
        """Advanced indexing of some axes, by places none of which is negative or too high; the others keep their
        affine part."""
        arrays = list(indices.values())
        block = np.broadcast_shapes(*(a.shape for a in arrays))
        axes = list(indices)
        adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
        rest = [a for a in range(self.ndim) if a not in indices]
        at = axes[0] if adjacent else 0

        def arranged(of_rest: list, of_block: list) -> tuple:
            return (*of_rest[:at], *of_block, *of_rest[at:])

        shape = arranged([self.shape[a] for a in rest], list(block))
        strides = arranged([self.strides[a] for a in rest], [0] * len(block))
        lift = arranged([1] * len(rest), list(block))
        base = None
        if self.base is not None:
            if any(self.base.shape[a] > 1 for a in axes):
                picks = {
                    a: np.broadcast_to(i if self.base.shape[a] > 1 else np.zeros((), i.dtype), block)
                    for a, i in zip(axes, arrays, strict=True)
                }
                if self.ndim == 1:
                    base = taken(self.base, picks[0])
                else:
                    base = self.base[tuple(picks.get(a, slice(None)) for a in range(self.ndim))]
            else:
                base = self.base.reshape(arranged([self.base.shape[a] for a in rest], [1] * len(block)))
        for axis, index in zip(axes, arrays, strict=True):
            if self.strides[axis]:
                step = np.multiply(index, self.strides[axis], dtype=id_dtype(max(self.highest, 1)))
                step = np.broadcast_to(step, block).reshape(lift)
                base = step if base is None else base + step
        return type(self)(shape, self.offset, strides, base)._evened()
