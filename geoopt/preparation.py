"""What preparing a program takes: seconds by stage, memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cut import Cut

Watch = Callable[[str, Any], None]  # called with a stage and its record


@dataclass
class Preparation:
    """What preparing a program took.

    seconds : by stage; peak_bytes : of the whole process, so far
    once_seconds : of the seconds, what compiling geoopt's own loops took; they are kept for later processes
    decisions : see `cut.Cut.decided`; of all phases
    """

    nodes: int
    scalars: int
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    once_seconds: float = 0.0
    decisions: tuple[dict[str, Any], ...] = ()

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Clock:
    """Times the stages, has each result checked, and keeps what `decompose` decided."""

    def __init__(self, watch: Watch | None):
        self.watch = watch
        self.seconds: dict[str, float] = {}
        self.decisions: list[dict[str, Any]] = []

    def run(self, stage: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        record = result[0] if stage == "trace" else result
        if hasattr(record, "check"):
            record.check()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
        if isinstance(record, Cut):
            self.decisions += record.decided()
        if self.watch:
            self.watch(stage, record)
        return result


def peak_bytes() -> int:
    """Peak memory of this process, in bytes (0 where the system does not tell)."""
    try:
        # unlike getrusage, this does not count what the parent process had when it started this one
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
