"""Where the time of some work goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from numba.core.event import Event, Listener


@dataclass
class Stopwatch:
    """Adds up the seconds of the parts of some work."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:  # work that fails takes time, too
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


class OwnCompilation(Listener):
    """Adds up the seconds that Numba compiles this package's functions, and what they call; not those of others."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._starts: list[tuple[float, bool]] = []

    def on_start(self, event: Event) -> None:
        assert event.data is not None
        module = str(event.data["dispatcher"].py_func.__module__)
        self._starts.append((time.perf_counter(), module.partition(".")[0] == __name__.partition(".")[0]))

    def on_end(self, event: Event) -> None:
        start, is_own = self._starts.pop()
        if is_own and not any(outer for _, outer in self._starts):
            self.seconds += time.perf_counter() - start
