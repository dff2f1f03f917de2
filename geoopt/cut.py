"""What `decompose` gives: a graph with its intermediates chosen, and the sums that write or add to outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import InternalError
from .graph import Graph, Traced
from .graph.references import Reference

MOST_PLACES = 8  # to which a kernel writes or adds one value


@dataclass(frozen=True, eq=False)
class Scatter:
    """Where the scalars of a node are added.

    output : its number;  entries : (k, size) of the node, the entries of the output that each scalar is added to;
        -1 in lanes that are added to fewer
    sign : 1, or -1 where they are subtracted;  lanes : of the node;  sums : the nodes that are added up so
    """

    output: int
    entries: np.ndarray
    sign: int
    lanes: int
    sums: frozenset[int]

    @property
    def values(self) -> int:
        """How many values an element adds."""
        return int((self.entries[:, : self.lanes] >= 0).sum())

    def mirrored(self) -> list[np.ndarray]:
        """Views (2, elements) of the entries, for the lanes that are added twice."""
        lanes = self.entries.reshape(2, -1, self.lanes)
        return [lanes[:, :, k] for k in np.flatnonzero(lanes[1, 0] >= 0)]


@dataclass(frozen=True, eq=False)
class Stream:
    """What a sum writes besides.

    output : its number;  entries : per term of the sum, the entry of the output, or -1;
    nodes : those that are written so, and need not be stored
    """

    output: int
    entries: np.ndarray
    nodes: frozenset[int]

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.entries >= 0))


@dataclass(frozen=True, eq=False)
class Decisions:
    """stored : indices of nodes whose scalars live in memory
    scatters : per node whose scalars are added to outputs, where
    streams : per sum that writes its terms to an output, what it writes
    runs : sums whose terms are read by runs or cursors, see `integers.runs` and `integers.cursors`
    reasons : per node, why it is stored or not
    """

    stored: frozenset[int]
    scatters: dict[int, list[Scatter]]
    streams: dict[int, Stream]
    runs: frozenset[int]
    reasons: dict[int, str]


@dataclass(frozen=True, eq=False)
class Cut:
    """A graph with its intermediates chosen.

    levels : per node, the step of the schedule in which a kernel for it runs (leaves: 0)
    ready : per node, the first step in which any kernel can evaluate or read it
    equals : per node (where it pays), the first equal scalar of each scalar, as positions in the node
    references : per node that an output needs, what it reads
    """

    traced: Traced
    decisions: Decisions
    levels: dict[int, int]
    ready: dict[int, int]
    equals: dict[int, np.ndarray]
    references: dict[int, list[Reference]]

    @property
    def stored(self) -> frozenset[int]:
        return self.decisions.stored

    @property
    def scatters(self) -> dict[int, list[Scatter]]:
        return self.decisions.scatters

    @property
    def streams(self) -> dict[int, Stream]:
        return self.decisions.streams

    @property
    def runs(self) -> frozenset[int]:
        return self.decisions.runs

    @property
    def graph(self) -> Graph:
        return self.traced.graph

    @property
    def streamed(self) -> frozenset[int]:
        """Nodes that the sum reading them evaluates and writes."""
        return frozenset().union(*(stream.nodes for stream in self.streams.values()))

    def check(self) -> None:
        for i in self.stored:
            for ref in self.references[i]:
                if (
                    ref.target.index in self.stored
                    and not ref.is_regular
                    and self.levels[ref.target.index] >= self.levels[i]
                ):
                    raise InternalError("decompose", f"intermediate {i} reads one of its own level")

    def decided(self) -> list[dict[str, Any]]:
        """Per node that is computed: its operation and shape, its level, where its values are, and why."""
        kinds = {
            "stored": self.stored,
            "added to outputs": self.scatters,
            "written by the sum that reads it": self.streamed,
        }
        found = []
        for node in self.graph.nodes:
            if node.index in self.levels and not node.is_leaf:
                kind = next((kind for kind, nodes in kinds.items() if node.index in nodes), "recomputed")
                why = self.decisions.reasons.get(node.index, "")
                why += "; its terms are neighbours in memory" if node.index in self.runs else ""
                of_node = {"node": f"n{node.index}", "operation": node.op, "shape": list(node.shape)}
                found.append({**of_node, "level": self.levels[node.index], "values": kind, "reason": why})
        return found

    def __str__(self) -> str:
        return "\n".join(
            f"{d['node']} = {d['operation']}{d['shape']}  {d['values']}, level {d['level']}: {d['reason']}"
            for d in self.decided()
        )
