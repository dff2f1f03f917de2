"""Views over scalar ids: the index arithmetic behind every symbolic array.

A view gives an id to each of its elements as the sum of two parts::

    id[i, j, ...] = offset + strides[0]*i + strides[1]*j + ...      (affine part)
                  + base[i, j, ...]                                 (explicit part, may be absent)

``base`` is *compact*: along an axis it does not depend on, its length is 1. So ``V[F]`` for vertex
positions ``V`` of shape (n, 3) keeps one integer per face corner, not one per coordinate, and the
three coordinates of a corner are visibly neighbours: the paper's address coherence, by construction.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod  # not the substitute for it, while code is traced
from typing import Any

import numpy as np

from .gathers import listed
from .hashing import content
from .indexed import Indexed
from .phantoms import address, compact, strided
from .spacing import bounds_of_parts, even_step, id_dtype


@functools.lru_cache(1024)
def _steps(shape: tuple[int, ...], strides: tuple[int, ...], into: tuple[int, ...]) -> list[int]:
    """Of an affine view, broadcast into a shape, how far each id is from the first."""
    return Ids(shape, 0, strides).broadcast_to(into).to_array().ravel().tolist()


@dataclass(frozen=True, eq=False, init=False)
class Ids(Indexed):
    """A shaped view over ids. Immutable; all operations are views or index arithmetic."""

    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]
    base: np.ndarray | None = None

    def __init__(
        self, shape: tuple[int, ...], offset: int, strides: tuple[int, ...], base: np.ndarray | None = None
    ) -> None:
        # in less than half the time of what a frozen dataclass makes
        self.__dict__.update(shape=shape, offset=offset, strides=strides, base=base)

    # -- construction -----------------------------------------------------------------------------

    @staticmethod
    def contiguous(first: int, shape: tuple[int, ...]) -> Ids:
        """The ids ``first, first + 1, ...`` in C order."""
        strides, step = [], 1
        for n in reversed(shape):
            strides.append(step)
            step *= int(n)
        return Ids(tuple(shape), int(first), tuple(reversed(strides)))

    @staticmethod
    def explicit(ids: np.ndarray) -> Ids:
        """A view that lists its ids one by one."""
        ids = np.asarray(ids)
        if ids.size and not np.issubdtype(ids.dtype, np.signedinteger):
            ids = ids.astype(np.int64)
        if ids.size == 1:
            return Ids(ids.shape, int(ids.reshape(())), (0,) * ids.ndim)
        return Ids(ids.shape, 0, (0,) * ids.ndim, ids)._folded()

    @staticmethod
    def spaced(ids: np.ndarray) -> Ids:
        """Like `explicit`, but affine along the axes on which the ids are evenly spaced."""
        if not ids.size:
            return Ids.explicit(ids)
        return Ids(ids.shape, 0, (0,) * ids.ndim, ids.astype(id_dtype(int(ids.max())), copy=False))._evened()

    @staticmethod
    def concatenate(parts: list[Ids], axis: int) -> Ids:
        """Join views along an axis; the result lists its ids unless it has only one part."""
        if len(parts) == 1:
            return parts[0]
        dtype = id_dtype(max(p.highest for p in parts if p.size) if any(p.size for p in parts) else 0)
        return Ids.explicit(np.concatenate([p.to_array(dtype) for p in parts], axis=axis))

    @staticmethod
    def stack(parts: list[Ids], axis: int) -> Ids:
        """Join views of one shape along a new axis; parts that differ by constants stay affine along the others."""
        steps = {b.offset - a.offset for a, b in itertools.pairwise(parts)}
        is_even, alike = len(steps) <= 1, {(p.strides, id(p.base)) for p in parts}
        one, lift = parts[0], (slice(None),) * axis + (None,)
        if len(alike) > 1 or not (is_even or one.base is None):
            return Ids.concatenate([p[lift] for p in parts], axis)
        shape = (*one.shape[:axis], len(parts), *one.shape[axis:])
        strides = (*one.strides[:axis], steps.pop() if len(steps) == 1 else 0, *one.strides[axis:])
        if is_even:
            return Ids(shape, one.offset, strides, None if one.base is None else np.expand_dims(one.base, axis))
        offsets = np.array([p.offset for p in parts], id_dtype(max(p.highest for p in parts)))
        return Ids(shape, 0, strides, np.expand_dims(offsets, [a for a in range(len(shape)) if a != axis]))._folded()

    # -- queries ----------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(prod(self.shape))

    @functools.cached_property
    def bounds(self) -> tuple[int, int]:
        """Not above the lowest of the ids, not below the highest; exact without an explicit part."""
        low = high = self.offset
        for stride, length in zip(self.strides, self.shape, strict=True):
            if stride > 0:
                high += stride * (length - 1)
            else:
                low += stride * (length - 1)
        if self.base is not None and self.base.size:
            least, most = zip(*bounds_of_parts(self.base), strict=True)
            low, high = low + int(min(least)), high + int(max(most))
        return low, high

    @property
    def lowest(self) -> int:
        """A lower bound of the ids (exact without an explicit part)."""
        return self.bounds[0]

    @property
    def highest(self) -> int:
        """An upper bound of the ids."""
        return self.bounds[1]

    def is_contiguous(self) -> bool:
        """Whether the ids are ``offset, offset + 1, ...`` in C order."""
        if self.base is not None:
            return False
        step = 1
        for stride, length in zip(reversed(self.strides), reversed(self.shape), strict=True):
            if length > 1 and stride != step:
                return False
            step *= length
        return True

    @functools.cached_property
    def key(self) -> tuple:
        """Equal keys mean equal ids."""
        strides = tuple(s if n > 1 else 0 for s, n in zip(self.strides, self.shape, strict=True))
        if self.base is None:
            return (self.shape, self.offset, strides)
        return (self.shape, self.offset, strides, self.base.shape, content(self.base))

    def step(self, axis: int) -> int | None:
        """By how much ids grow from one place along an axis to the next; None where that is not the same everywhere."""
        if self.base is None or self.base.shape[axis] == 1:
            return self.strides[axis]
        step = even_step(np.moveaxis(self.base, axis, 0))
        return None if step is None else self.strides[axis] + step

    def to_array(self, dtype: type | None = None) -> np.ndarray:
        """All ids, one by one, in the view's shape; not to be written to, for it may be the view's own array."""
        if self.base is not None and self.base.shape == self.shape and not any(self.strides):
            is_narrow = not self.offset and self.base.dtype == np.int32  # whatever its bounds are
            base = self.base.astype(dtype or (np.int32 if is_narrow else id_dtype(self.highest)), copy=False)
            return base + base.dtype.type(self.offset) if self.offset else base
        dtype = dtype or id_dtype(self.highest)
        if self.ndim == 1 and self.base is None and self.strides[0]:
            first, step = self.offset, self.strides[0]
            return np.arange(first, first + step * self.shape[0], step, dtype=dtype)
        out = np.full(self.shape, self.offset, dtype)
        for axis, (step, length) in enumerate(zip(self.strides, self.shape, strict=True)):
            if step and length > 1:
                line = step * np.arange(length, dtype=dtype)
                out += line.reshape((-1,) + (1,) * (self.ndim - axis - 1))
        if self.base is not None:
            out += self.base.astype(dtype, copy=False)
        return out

    def listed(self, shape: tuple[int, ...]) -> list[int]:
        """A few ids, broadcast to a shape, as Python's numbers in C order."""
        if self.base is not None:
            view = self if shape == self.shape else self.broadcast_to(shape)
            return view.to_array(np.int64).ravel().tolist()
        return [self.offset + step for step in _steps(self.shape, self.strides, shape)]

    # -- views ------------------------------------------------------------------------------------

    def shifted(self, by: int) -> Ids:
        """All ids moved by a number."""
        out = Ids(self.shape, self.offset + by, self.strides, self.base)
        if "bounds" in self.__dict__:  # known: its explicit part need not be read again
            out.__dict__["bounds"] = tuple(bound + by for bound in self.bounds)
        return out

    def _phantoms(self) -> tuple[np.ndarray, np.ndarray | None]:
        base = None if self.base is None else np.broadcast_to(self.base, self.shape)
        return strided(self.shape, self.strides), base

    def _from_phantoms(self, affine: np.ndarray, base: np.ndarray | None) -> Ids:
        assert not affine.flags.owndata or not affine.size, "a copy of phantoms has no ids"
        out = Ids(
            affine.shape,
            self.offset + (address(affine) if affine.size else 0),
            affine.strides,
            None if base is None else compact(base),
        )
        return out._folded()

    def _evened(self) -> Ids:
        """Affine along the axes on which the explicit part is evenly spaced."""
        base, strides = self.base, list(self.strides)
        if base is None or not self.size:
            return self._folded()
        for axis in range(base.ndim):
            line = np.moveaxis(base, axis, 0)
            step = even_step(line) if len(line) > 1 else None
            if step is not None:
                strides[axis] += step
                base = np.moveaxis(line[:1], 0, axis)
        return Ids(self.shape, self.offset, tuple(strides), base)._folded()

    def _folded(self) -> Ids:
        """A one-element explicit part is a constant; an empty view has no ids at all."""
        if 0 in self.shape:
            return Ids(self.shape, 0, (0,) * self.ndim)
        if self.base is not None and self.base.size == 1:
            return Ids(self.shape, self.offset + int(self.base.reshape(())), self.strides)
        return self

    def through(self, view: Callable[[np.ndarray], Any]) -> Any:
        """What a function that only views its argument makes of these ids; lists of views where it gives lists."""
        affine, base = self._phantoms()
        seen, listed = view(affine), None if base is None else view(base)
        if isinstance(seen, np.generic):  # NumPy takes the element out of arrays without axes
            return self
        if isinstance(seen, np.ndarray):
            return self._from_phantoms(seen, listed)
        bases = [None] * len(seen) if listed is None else listed
        return [self._from_phantoms(a, b) for a, b in zip(seen, bases, strict=True)]

    def transpose(self, axes: tuple[int, ...]) -> Ids:
        if axes == tuple(range(self.ndim)):
            return self
        base = None if self.base is None else self.base.transpose(axes)
        shape, strides = (tuple(of[a] for a in axes) for of in (self.shape, self.strides))
        return Ids(shape, self.offset, strides, base)

    def broadcast_to(self, shape: tuple[int, ...]) -> Ids:
        if shape == self.shape:
            return self
        added = len(shape) - len(self.shape)
        if added < 0 or any(n not in (1, m) for n, m in zip(self.shape, shape[added:], strict=True)):
            np.broadcast_to(strided(self.shape, self.strides), shape)  # NumPy says why this cannot be
        pairs = zip(self.shape, self.strides, shape[added:], strict=True)
        strides = (0,) * added + tuple(stride if n == m else 0 for n, stride, m in pairs)
        base = None if self.base is None else self.base.reshape((1,) * added + self.base.shape)
        return Ids(shape, self.offset, strides, base)._folded()

    def reshape(self, shape: tuple[int, ...]) -> Ids:
        """Reshape without listing the ids where the layout allows, else by listing them."""
        if shape == self.shape:
            return self
        affine, base = self._phantoms()
        try:
            affine = np.reshape(affine, shape, copy=False)
            base = None if base is None else np.reshape(base, shape, copy=False)
        except ValueError:
            return Ids.explicit(self.to_array().reshape(shape))
        return self._from_phantoms(affine, base)

    def can_be(self, shape: tuple[int, ...]) -> bool:
        """Whether the affine part stays a view in another shape."""
        try:
            np.reshape(self._phantoms()[0], shape, copy=False)
        except ValueError:
            return False
        return True

    def lane(self, number: tuple[int, ...]) -> Ids:
        """The 1-D view ``self[:, *number]``."""
        offset = self.offset + sum(k * step for k, step in zip(number, self.strides[1:], strict=True))
        base = self.base
        if base is not None:
            base = base[(slice(None), *(k if n > 1 else 0 for k, n in zip(number, base.shape[1:], strict=True)))]
        return Ids(self.shape[:1], offset, self.strides[:1], base)._folded()

    @functools.cached_property
    def lanes(self) -> tuple[Ids, ...]:
        """All of them, in order, `canonical`; none is the view itself, which would keep itself in memory."""
        return tuple(self.lane(number).canonical() for number in np.ndindex(*self.shape[1:]))

    def at(self, places: np.ndarray) -> np.ndarray:
        """The ids at some places of a column."""
        ids = self.offset + self.strides[0] * places
        return ids if self.base is None else ids + self.base[places]

    def compose(self, column: Ids, given: bool = False) -> Ids:
        """``self.ravel()[column]`` for a 1-D column of flat positions, affine where possible.

        given : the list behind the column may be overwritten with the result's
        """
        if not column.size:
            return Ids.contiguous(0, column.shape)
        if self.ndim and self.is_contiguous():
            return column.shifted(self.offset)
        if self.ndim == 1 and column.size == self.size and not column.offset and column.is_contiguous():
            return self
        if self.ndim == 1 and column.base is not None:
            return self._take({0: column.to_array()})
        row = int(prod(self.shape[1:]))
        if column.base is None and self.ndim:
            step, start = column.strides[0], column.offset
            if step == 0:
                return self[tuple(int(i) for i in np.unravel_index(start, self.shape))].broadcast_to(column.shape)
            if step % row == 0 and step > 0:
                lane = tuple(int(i) for i in np.unravel_index(start % row, self.shape[1:])) if row > 1 else ()
                lane = lane or (0,) * (self.ndim - 1)
                stop = start // row + (step // row) * (column.size - 1) + 1
                if step == row and not start // row and column.size == self.shape[0]:
                    return self.lane(lane)
                return self[(slice(start // row, stop, step // row), *lane)]
        if not self.ndim:
            return self.broadcast_to(column.shape)
        if self.ndim == 1:
            return self._take({0: column.to_array()})
        dtype = id_dtype(max(self.highest, self.size))
        base = np.zeros((1,) * self.ndim, dtype) if self.base is None else self.base.astype(dtype, copy=False)
        places = column.to_array(dtype)
        out = places if given and places is column.base else np.empty(places.shape, dtype)
        listed(self.offset, self.strides, base, self.shape, places, out)
        return Ids.explicit(out)._evened()

    def canonical(self) -> Ids:
        """The same column with an arithmetic explicit part made affine, and its first entry moved to the offset."""
        if self.base is None or self.ndim != 1 or not self.base.size:
            return self
        step = even_step(self.base)
        return self if step is None else Ids(self.shape, self.offset + int(self.base[0]), (self.strides[0] + step,))
