"""Whether one version of geoopt is slower or larger than another, or the machine only noisy.

Each round has two values of the older version, BASE, and one of the present tree; a value is the least that was
measured. What the two of BASE differ by is noise: that of the work itself, and that of most works. A difference counts
where it is larger than a multiple of both, than a least share and than a least amount.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

LEAST = {"one thread": 20e-6, "two threads": 50e-6, "preparing": 0.03, "memory": 8e6}  # s, s, s and bytes
SHARE = 0.05  # by which a value must be larger at least
TIMES = 2.0  # noise of works, and of most of them, up to which a difference is explained
MOST = 0.9  # the share of the works whose noise is no larger than what is taken to be that of all
CERTAIN = 2.0  # how many times as much is no doubt, unless noise is large
COUNTED, BYTES = 0.05, 4096  # counts are exact; by what share they may grow, and bytes by so many


class Rounds(NamedTuple):
    """Values of one measure of one work, one in each round: of BASE, of BASE again, of the present tree."""

    base: list[float]
    again: list[float]
    now: list[float]

    @property
    def usual(self) -> float:
        """Of BASE."""
        return float(np.sqrt(min(self.base) * min(self.again)))

    @property
    def ratio(self) -> float:
        return min(self.now) / self.usual

    @property
    def ratios(self) -> tuple[float, float]:
        """The least and the largest of the present tree over BASE in any round."""
        found = [n / b for b, a, n in zip(*self, strict=True) for b in (b, a)]
        return min(found), max(found)

    @property
    def itself(self) -> tuple[float, float]:
        """The same of BASE over BASE, either way round."""
        found = [a / b for b, a in zip(self.base, self.again, strict=True)]
        return min(*found, *(1 / f for f in found)), max(*found, *(1 / f for f in found))

    @property
    def noise(self) -> float:
        """The logarithm of BASE over BASE."""
        return abs(float(np.log(min(self.again) / min(self.base))))


def noise_of_most(measured: Iterable[Rounds]) -> float:
    """What the noise of few works is larger than; see `Rounds.noise`."""
    found = [rounds.noise for rounds in measured]
    return float(np.quantile(found, MOST)) if found else 0.0


def is_worse(what: str, rounds: Rounds, usual_noise: float) -> bool:
    """Whether the present tree needs more than BASE, and noise does not explain it. what : a name in `LEAST`"""
    return _is_apart(what, rounds, usual_noise, rounds.ratio)


def is_certain(rounds: Rounds, usual_noise: float) -> bool:
    """Whether what is worse need not be measured again."""
    return bool(np.log(rounds.ratio) > max(np.log(CERTAIN), 2 * TIMES * max(rounds.noise, usual_noise)))


def is_better(what: str, rounds: Rounds, usual_noise: float) -> bool:
    return _is_apart(what, rounds, usual_noise, 1 / rounds.ratio)


def _is_apart(what: str, rounds: Rounds, usual_noise: float, times: float) -> bool:
    explained = max(np.log1p(SHARE), TIMES * max(rounds.noise, usual_noise))
    return bool(np.log(times) > explained and abs(min(rounds.now) - rounds.usual) > LEAST[what])


def grown(base: Mapping[str, int], now: Mapping[str, int]) -> list[str]:
    """The counts that are larger by more than a little."""
    least = {"columns": BYTES, "workspace": BYTES, "code": BYTES}
    return [what for what, count in base.items() if now[what] > max((1 + COUNTED) * count, count + least.get(what, 0))]
