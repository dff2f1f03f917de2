"""The nodes of loops that run as often as values decide; see `graph.while_loop`."""

from __future__ import annotations

from typing import Any

from ..integers.ids import Ids
from . import Graph, Node


def while_node(graph: Graph, state: Ids, begin: Ids, end: Ids, goes_on: Ids) -> Node:
    """The state after a loop, as it is traced. state, begin, end : in a turn, before the loop, and after a turn, (k,);
    goes_on : whether there is a turn, 1 or 0, (1,)"""
    return graph.append(None, "while", (state, begin, end, goes_on), begin.shape)


def loop_node(graph: Graph, loop: Any, operands: tuple[Ids, ...]) -> Node:
    """The state after a `while_loop.WhileLoop`. operands : that before it (k,), and what else its turns read"""
    key = ("loop", loop.key, *(o.key for o in operands))
    return graph.append(key, "loop", operands, operands[0].shape, loop=loop)
