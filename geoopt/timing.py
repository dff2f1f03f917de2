"""Where the time of some work goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


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
