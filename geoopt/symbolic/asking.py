"""Which code asks for a branch on unknown values, and what to write instead of it."""

from __future__ import annotations

import ast
import functools
import itertools
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from .. import remedies
from ..callers import user_frame, user_line
from ..graph import Graph
from ..integers.ids import Ids
from ..sources import parts_of, source_of


@dataclass(frozen=True)
class Asked:
    """Where a branch is asked for.

    line : as errors give it;  code, instruction : of the user's code that does
    """

    line: str
    code: CodeType
    instruction: int

    @staticmethod
    def here() -> Asked:
        """By who called what calls this."""
        frame = user_frame()
        return Asked(user_line(), frame.f_code, frame.f_lasti)

    @property
    def remedy(self) -> str:
        """What to write instead: as the parts of the source say in which the instruction is, the innermost first."""
        around = _around(self.code, self.instruction)
        found = (_remedy(inner, outer) for outer, inner in reversed(list(itertools.pairwise(around))))
        return next((remedy for remedy in found if remedy), remedies.CHOOSE)

    @property
    def ends_loop(self) -> bool:
        """Whether it decides if there is another turn of a loop."""
        around = _around(self.code, self.instruction)
        loops = [i for i, node in enumerate(around) if isinstance(node, (ast.For, ast.While))]
        in_loop = around[loops[0] :] if loops else []
        return any(_is_last(inner, outer) for outer, inner in itertools.pairwise(in_loop))


@functools.lru_cache(maxsize=256)
def _around(code: CodeType, instruction: int) -> list[ast.AST]:
    """The parts of the source that an instruction is in, the outermost first."""
    place = next(itertools.islice(code.co_positions(), instruction // 2, None))
    if None in place:
        return []
    line, end_line, column, end_column = place
    nodes = parts_of(source_of(code.co_filename))
    return [node for node in nodes if _holds(node, (line, column), (end_line, end_column))]


def _is_last(node: ast.AST, around: ast.AST) -> bool:
    """Whether a part of the source is a condition that leaves a loop."""
    if isinstance(around, ast.While):
        return around.test is node
    leaves = isinstance(around, ast.If) and around.test is node and around.body
    return bool(leaves) and isinstance(around.body[-1], (ast.Break, ast.Return))  # type: ignore[attr-defined]


def _holds(node: ast.AST, begin: tuple, end: tuple) -> bool:
    """Whether a part of the source has another within."""
    if not isinstance(node, (ast.expr, ast.stmt, ast.comprehension)):
        return False
    if isinstance(node, ast.comprehension):
        return any(_holds(part, begin, end) for part in node.ifs)
    first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return first <= begin and end <= last  # type: ignore[operator]


def _remedy(node: ast.AST, around: ast.AST) -> str | None:
    """That of one part of the source, as far as it has its own. around : the part that it is part of"""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("sorted", "sort"):
            return remedies.ORDER
        if name in ("filter", "compress") or (name in ("max", "min") and any(k.arg == "key" for k in node.keywords)):
            return remedies.INDICES
    if isinstance(node, ast.comprehension):
        return remedies.INDICES
    if isinstance(around, ast.While) and around.test is node:
        return remedies.STEPS
    return None


def whole_variable(graph: Graph, ids: Ids) -> str | None:
    """The name of the argument that is read, if the one given was of whole numbers in floats."""
    nodes = graph.nodes_of(ids)
    given: Any = graph.given.get(nodes[0].index) if len(nodes) == 1 else None
    return nodes[0].name if given is not None and np.array_equal(given, np.rint(given)) else None
