"""How long a call takes on many ranks, on paper: what one rank measures here, and what divisions of a mesh count.

    T = t₀ + S (G + K + P) + Σ over exchanges (a ν + b / β) + r log₂(p) a

G, K, P : seconds that the slowest rank needs to copy its values, for kernels, and to put values into PETSc's objects:
    of one process that computes alone on as many elements, from a table of sizes, see `Costs`
t₀ : seconds of a call without any elements, which the table has, too
S : how many times as long processes take that share a machine: its memory, or its cores where there are more of them
a, β : seconds of a message and bytes per second, within a machine and between machines, whose ranks share one link
ν, b : the neighbours of a rank, and the bytes it gets; r : sums of a number over all p ranks
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from .partitions import RECORD as PARTITIONS

MATRIX_BYTES = 32  # of memory for each value of MatSetValuesCOO, assumed: value, place, count, result
TOLERANCE = 0.25  # of predictions, where others do not use the machine
QUIET = 0.2  # cores that others may use then
PARTS = ("ghosts", "kernels", "values")  # of a call, whose work is shared out


@dataclass(frozen=True)
class Network:
    """latency : of a message [s];  rate : of one machine's link, or of one pair of ranks within a machine [bytes/s]"""

    name: str
    latency: float
    rate: float


ETHERNET = Network("10 Gb/s Ethernet", 25e-6, 1.1e9)
INFINIBAND = Network("InfiniBand HDR, 200 Gb/s", 1.5e-6, 23e9)
SHARED = Network("shared memory", 0.8e-6, 5e9)  # of a workstation, without others that work


@dataclass(frozen=True)
class Machine:
    """cores : of which each computes as the one here does;  memory_rate : of all cores together [bytes/s]
    cache : of one core [bytes]; ranks whose data fit into it do not wait for memory
    slowdown : instead of memory_rate, of 1, 2, ... processes, where that was measured"""

    cores: int
    memory_rate: float = math.inf
    cache: float = 0.0
    slowdown: tuple[float, ...] = ()

    def shared(self, processes: int, moved: float, seconds: float) -> float:
        """How many times as long each of so many processes takes that alone moves so many bytes in so many seconds."""
        running = min(processes, self.cores)
        if self.slowdown:
            found = self.slowdown[min(running, len(self.slowdown)) - 1]
        else:
            found = max(1.0, running * moved / (self.memory_rate * seconds)) if moved > self.cache else 1.0
        return found * max(1.0, processes / self.cores)


WORKSTATION = Machine(16, memory_rate=100e9, cache=2e6)


@dataclass(frozen=True)
class Cluster:
    """Machines of one kind, with as many ranks each; the ranks of one machine are successive parts."""

    machine: Machine
    within: Network
    between: Network
    ranks: int


@dataclass(frozen=True)
class Costs:
    """Of one process alone, by the elements of its mesh: seconds of a call's parts, and bytes that it moves.

    elements : increasing;  ghosts, kernels, values : seconds for as many;  moved : bytes for each element
    """

    elements: tuple[float, ...]
    ghosts: tuple[float, ...]
    kernels: tuple[float, ...]
    values: tuple[float, ...]
    moved: float

    def seconds(self, part: str, elements: float) -> float:
        """Of a mesh of so many elements; between sizes by powers, beyond the largest in proportion."""
        sizes, times = np.array(self.elements), np.array(getattr(self, part))
        found = float(np.exp(np.interp(np.log(elements), np.log(sizes), np.log(times))))
        return found * max(1.0, elements / sizes[-1])

    def parts(self, elements: float) -> dict[str, float]:
        return {part: self.seconds(part, elements) for part in PARTS}


@dataclass(frozen=True)
class Work:
    """What ranks exchange in a call.

    rings : of elements around a rank's own that it computes, too
    forward : for each exchange of ghosts, the bytes of a ghost
    reverse : for each exchange of what is added at others, bytes of a remote matrix entry and of a ghost
    sums : numbers that are added over all ranks
    """

    rings: int = 0
    forward: tuple[int, ...] = ()
    reverse: tuple[tuple[int, int], ...] = ()
    sums: int = 0


WORKS = {
    "cotan": Work(forward=(24,), reverse=((8, 0), (0, 8))),  # L; M, which has a diagonal alone
    "poisson": Work(forward=(24, 8), reverse=((8, 0), (0, 8))),  # the matrix; the right-hand side
    "arap": Work(rings=2, forward=(24,)),
}
STEP = Work(forward=(8,), sums=2)  # of conjugate gradients, without a preconditioner


@dataclass(frozen=True)
class Prediction:
    """Seconds of a call on so many ranks, by what they are for: `PARTS`, and what else is in `TERMS`.

    alone : seconds of one rank
    """

    ranks: int
    terms: dict[str, float]
    alone: float

    @property
    def seconds(self) -> float:
        return sum(self.terms.values())

    @property
    def speedup(self) -> float:
        return self.alone / self.seconds

    @property
    def efficiency(self) -> float:
        return self.speedup / self.ranks

    @property
    def largest(self) -> str:
        """What most of those seconds are for that one rank does not need."""
        return max((name for name in self.terms if name not in PARTS), key=lambda name: self.terms[name])


def predicted(work: Work, costs: Costs, division: dict[str, Any], cluster: Cluster, alone: float = 0.0) -> Prediction:
    """A call on a mesh that is divided so, see `benchmarks.partitions.statistics`.

    alone : seconds of one rank, to compare with; those of this division where it has one part
    """
    ranks, added = division["parts"], division["halo"][work.rings]["added"][0]
    own, whole = (costs.parts(elements) for elements in (division["elements"][0], division["elements"][0] + added))
    least = sum(costs.parts(costs.elements[0]).values())
    together, moved = sum(whole.values()), costs.moved * (division["elements"][0] + added)
    running = min(ranks, cluster.ranks)
    shared = cluster.machine.shared(running, moved, together)
    terms = own | {
        "halo": together - sum(own.values()),
        "fixed": least,
        "sharing": (shared - 1) * together,
    }
    terms["kernels"] -= least
    terms |= _exchanged(work, division, cluster) if ranks > 1 else {}
    return Prediction(ranks, terms, alone or sum(terms.values()))


def _exchanged(work: Work, division: dict[str, Any], cluster: Cluster) -> dict[str, float]:
    """Seconds of messages: "within" machines; "latency" and "bytes" between them; "sums"."""
    halo, ranks = division["halo"][work.rings], division["parts"]
    exchanges = len(work.forward) + len(work.reverse)
    of_entries = sum(entry for entry, _ in work.reverse)
    of_ghosts = sum(work.forward) + sum(ghost for _, ghost in work.reverse)
    ghosts, remote = max(halo["ghosts"][0], halo["sent"][0]), division["remote"][0]
    volume = of_ghosts * ghosts + of_entries * remote
    abroad, ghosts_abroad = halo["neighbours_abroad"][0], halo["machine"][0]
    inside = max(halo["neighbours"][0] - abroad, 1)
    # of a machine's remote entries as many go abroad as of its ghosts
    per_ghost = of_ghosts + of_entries * remote / max(halo["ghosts"][0], 1)
    within, between = cluster.within, cluster.between
    machines = max(1.0, ranks / cluster.ranks)
    steps = math.log2(min(ranks, cluster.ranks)) * within.latency + math.log2(machines) * between.latency
    return {
        "within": exchanges * inside * within.latency + volume / within.rate,
        "latency": exchanges * abroad * between.latency,
        "bytes": per_ghost * ghosts_abroad / between.rate,
        "sums": work.sums * steps,
    }


# -- from what was measured ---------------------------------------------------------------------------------------


def divisions() -> dict[str, Any]:
    """The counted divisions of 10 million vertices."""
    return json.loads(PARTITIONS.read_text())


def costs_of(record: dict[str, Any], work: str) -> Costs:
    """From a record of `benchmarks.distributed`: of the fastest launch at each size."""
    sizes = [_fastest(same) for same in zip(*record["costs"][work]["1"], strict=True)]
    times = {part: tuple(size[part] for size in sizes) for part in PARTS}
    return Costs(tuple(size["elements"] for size in sizes), **times, moved=_moved(sizes[-1], work))


def _moved(size: dict[str, float], work: str) -> float:
    """Bytes for each element: of kernels, and of the values of matrices, 3.5 for each triangle and half a diagonal."""
    entries = {"cotan": 4.0, "poisson": 3.5}.get(work, 0.0)
    return size["moved_bytes"] / size["elements"] + MATRIX_BYTES * entries


def _fastest(same: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of what several launches measured of one size."""
    return min(same, key=lambda size: sum(size[part] for part in PARTS))


def _middle(same: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(median(one[name] for one in same)) for name in same[0]}


def here(record: dict[str, Any], work: str, ranks: int) -> Cluster:
    """The machine that a record is of: how many times as long two processes take, and what messages take."""
    costs, ratios = costs_of(record, work), []
    for size in map(_fastest, zip(*record["costs"][work]["2"], strict=True)):
        alone = sum(costs.seconds(part, size["elements"]) for part in PARTS)
        ratios.append(sum(size[part] for part in PARTS) / alone)
    slowdown = (1.0, max(1.0, float(median(ratios))))
    machine = Machine(record["machine"]["cores"], slowdown=slowdown)
    network = network_of(record, "4" if ranks > 2 else "2")
    return Cluster(machine, network, network, 10**9)


def network_of(record: dict[str, Any], ranks: str) -> Network:
    """Latency from the shortest message, rate from the longest."""
    times = _middle([launch["seconds"] for launch in record["messages"][ranks]])
    sizes = sorted(map(int, times))
    latency, longest = times[str(sizes[0])], times[str(sizes[-1])]
    return Network("shared memory", latency, sizes[-1] / max(longest - latency, 1e-9))


def beside(record: dict[str, Any], work: str) -> list[tuple[int, float, float, float]]:
    """Ranks, predicted and measured seconds of the fastest call on the machine of a record, and how many cores others
    used meanwhile: where these are more than `QUIET`, ranks waited for others, of whom the model does not know."""
    found = []
    for division in record["divisions"]:
        ranks = division["parts"]
        if str(ranks) in record["works"][work]:
            prediction = predicted(WORKS[work], costs_of(record, work), division, here(record, work, ranks))
            launch = min(record["works"][work][str(ranks)], key=lambda launch: launch["fastest"])
            found.append((ranks, prediction.seconds, launch["fastest"], launch.get("others", record["others"])))
    return found


def on_cluster(
    work: Work, costs: Costs, network: Network = ETHERNET, machine: Machine = WORKSTATION
) -> list[Prediction]:
    """Predictions for 10 million vertices on every counted number of ranks, 16 on each machine."""
    table = divisions()
    cluster = Cluster(machine, SHARED, network, table["machine"])
    first, *others = table["divisions"]
    one = predicted(work, costs, first, cluster)
    return [one, *(predicted(work, costs, division, cluster, one.seconds) for division in others)]


def of_step(rate: float) -> Costs:
    """A step of conjugate gradients, of which memory decides: the matrix's 12 bytes for each of 7 entries of a vertex,
    and ten passes over vectors. rate : of one core [bytes/s]"""
    moved = 0.5 * (7 * 12 + 10 * 8)  # half a vertex for each triangle
    sizes = (200.0, 2e7)
    times = tuple(2e-6 + moved * elements / rate for elements in sizes)
    return Costs(sizes, (1e-9, 1e-9), times, (1e-9, 1e-9), moved)


TERMS: dict[str, str] = {
    "ghosts": "copying values",
    "kernels": "kernels",
    "values": "putting values into matrices and vectors",
    "halo": "computing other ranks' elements, too",
    "fixed": "what a call takes without any elements",
    "sharing": "waiting for the memory or the cores of a machine",
    "within": "messages within machines",
    "latency": "the latency of messages between machines",
    "bytes": "the bytes between machines",
    "sums": "sums over all ranks",
}


def stops(found: list[Prediction], least: float = 0.5, base: int = 1) -> str:
    """Where efficiency falls below a bound, and what most is lost to then.

    base : the number of ranks that others are compared with; of one whole machine, whose memory they share as well
    """
    first = next(one for one in found if one.ranks == base)
    for one in found[found.index(first) :]:
        if first.seconds * base / (one.seconds * one.ranks) < least:
            lost = {name: seconds for name, seconds in one.terms.items() if name not in (*PARTS, "sharing")}
            name = one.largest if base == 1 else max(lost, key=lambda name: lost[name])
            return f"below {least:.0%} at {one.ranks:,} ranks; most is lost to {TERMS[name]}"
    return f"{least:.0%} or more up to {found[-1].ranks:,} ranks"
