"""Ctrl-C comes before what must not be left half done, or after it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_holding: list[_Holding] = []  # the one that is open, in the main thread, to which Python gives interrupts


class _Holding:
    """A handler of interrupts that keeps the one that comes while it is not `allowed`.

    before : the handler in whose place it is
    """

    def __init__(self, before: Callable[[int, FrameType | None], Any]):
        self.before, self.is_allowed, self.is_pending = before, False, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.is_allowed:
            self.is_pending = True
            return
        self.is_allowed = False  # what ends because of this one is not interrupted by another
        self.before(number, frame)
        self.is_allowed = True

    def allow(self, is_allowed: bool) -> None:
        """From now on, or not; the one that has waited comes now."""
        self.is_allowed = is_allowed
        if is_allowed and self.is_pending:
            self.is_pending = False
            signal.raise_signal(signal.SIGINT)


def _current() -> _Holding | None:
    return _holding[0] if _holding and threading.current_thread() is threading.main_thread() else None


@contextmanager
def held() -> Iterator[None]:
    """While this is open, interrupts wait, but for what is `allowed`."""
    before = signal.getsignal(signal.SIGINT)
    if _current():
        with _allowing(False):
            yield
    elif threading.current_thread() is threading.main_thread() and callable(before):
        holding = _Holding(before)
        try:
            signal.signal(signal.SIGINT, holding)
            _holding.append(holding)
            yield
        finally:
            _holding.clear()
            signal.signal(signal.SIGINT, before)
            if holding.is_pending:
                signal.raise_signal(signal.SIGINT)
    else:
        yield


@contextmanager
def allowed() -> Iterator[None]:
    """While this is open, interrupts come at once."""
    with _allowing(True):
        yield


@contextmanager
def _allowing(is_allowed: bool) -> Iterator[None]:
    holding = _current()
    if holding is None:
        yield
        return
    outside = holding.is_allowed
    holding.allow(is_allowed)
    try:
        yield
    finally:
        holding.allow(outside)
