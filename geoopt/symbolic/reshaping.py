"""`Reshaping`: the methods of symbolic arrays that give the same values in another shape or order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Self

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..errors import GeooptError, ShapeError, UnsupportedError
from ..integers.ids import Ids


class Reshaping:
    """How arrays are copied and take other shapes. What is a view in NumPy, where memory is in C order, is one here."""

    __slots__ = ()
    shape: tuple[int, ...]
    ndim: int
    size: int
    ids: Ids
    _owner: Any
    _derive: Callable[[Ids], Ids] | None

    def __getitem__(self, key: Any) -> Self:
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Self]:
        raise NotImplementedError

    def reading(self, ids: Ids) -> Self:
        raise NotImplementedError

    def sharing(self, derive: Callable[[Ids], Ids]) -> Self:
        raise NotImplementedError

    @property
    def memory(self) -> Ids | None:
        """Where the numbers of a view would be in its owner's memory; None for arrays that are no views."""
        if not self.shape or self._owner is None:
            return None
        return self._derive(Ids.contiguous(0, self._owner.shape))  # type: ignore[misc]

    def reshape(self, *lengths: Any, order: str = "C", copy: bool | None = None) -> Self:
        shape = _integers(lengths[0] if len(lengths) == 1 and np.iterable(lengths[0]) else lengths)
        if is_by_columns(order):
            return self.transpose().reshape(tuple(shape)[::-1], copy=copy).transpose()
        known = prod(s for s in shape if s != -1)
        whole = tuple(self.size // max(known, 1) if s == -1 else s for s in shape)
        if prod(whole) != self.size or list(shape).count(-1) > 1:
            what = f"cannot reshape {self.shape} into {tuple(shape)}"
            raise ShapeError(what, "give a shape with as many elements and at most one -1")
        result, memory = self.sharing(lambda ids: ids.reshape(whole)), self.memory
        return result.copy() if copy or (memory is not None and not memory.can_be(whole)) else result

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = np.sort(self, axis, kind, order, stable=stable)  # type: ignore[call-overload]

    def ravel(self, order: str = "C") -> Self:
        if is_by_columns(order):
            return self.transpose().ravel()
        result, memory = self.sharing(lambda ids: ids.reshape((self.size,))), self.memory
        return result if memory is None or memory.is_contiguous() else result.copy()

    @property
    def flat(self) -> Self:
        """The entries in C's order, to be read and written."""
        return self.sharing(lambda ids: ids.reshape((self.size,)))

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[...] = np.resize(value, self.size)  # type: ignore[index]

    def compress(self, condition: Any, axis: int | None = None) -> Any:
        return np.compress(condition, self, axis)  # type: ignore[call-overload]

    def flatten(self, order: str = "C") -> Self:
        return self.reshape(-1, order=order).copy()

    def item(self, *place: Any) -> Self:
        """One number, by its place in C order or by one for each axis; without any, the only one."""
        if not place and self.size != 1:
            raise ShapeError("x.item() of an array that has several", "give the place of one of them")
        index = place[0] if len(place) == 1 and isinstance(place[0], tuple) else place
        return self[index] if len(index) == self.ndim != 1 else self.ravel()[index[0] if index else 0]

    def tolist(self) -> Any:
        """Nested lists of numbers."""
        return [row.tolist() for row in self] if self.ndim else self

    def copy(self, order: str = "C") -> Self:
        """order : of the copy's memory, which nobody sees"""
        return self.reading(self.ids)

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, _: dict) -> Self:
        return self.copy()  # of the same graph

    def transpose(self, *order_of_axes: Any) -> Self:
        listed = len(order_of_axes) == 1 and isinstance(order_of_axes[0], (tuple, list, np.ndarray))
        axes = tuple(order_of_axes[0] if listed else order_of_axes)
        order = range(self.ndim)[::-1] if axes in ((), (None,)) else normalize_axis_tuple(axes, self.ndim)
        if len(order) != self.ndim:
            raise ValueError(f"axes {axes} are not those of an array of {self.ndim} axes")
        return self.sharing(lambda ids: ids.transpose(tuple(order)))


def _integers(lengths: Any) -> tuple[int, ...]:
    try:
        return tuple(operator.index(length) for length in lengths)
    except GeooptError:
        raise
    except TypeError as error:
        raise ShapeError(f"a shape of {lengths!r}: {error}", "give integers") from None


def is_by_columns(order: str) -> bool:
    """Whether elements are counted with the first index running fastest, as in Fortran."""
    if not isinstance(order, str) or order not in ("C", "F"):
        raise UnsupportedError(f"order={order!r}, that of the memory, is not supported", "write order='C' or order='F'")
    return order == "F"


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array can be broadcast into another."""
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(shape[::-1], into[::-1], strict=False))
