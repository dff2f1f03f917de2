"""`Numbered`: what the compiled code of others calls by a number, for it cannot hold objects of Python's."""

from __future__ import annotations

import itertools
import secrets
import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class Numbered(Generic[T]):
    """Objects by numbers, as long as others keep them.

    Numbers begin at a random one, so that no other process has the same: others may keep compiled code in files.
    """

    def __init__(self) -> None:
        self._objects: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()
        self._numbers: weakref.WeakKeyDictionary[T, int] = weakref.WeakKeyDictionary()
        self._next = itertools.count(secrets.randbits(62))

    def number_of(self, one: T) -> int:
        number = self._numbers.setdefault(one, next(self._next))
        self._objects[number] = one
        return number

    def find(self, number: int) -> T | None:
        """The object with a number; None where it is gone, or of another process."""
        return self._objects.get(number)
