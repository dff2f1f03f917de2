"""What phases need of their arrays, and of the factors of their systems."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..graph.phased import Phase, Phases, Solve


def of_one_matrix(phase: Phase) -> list[list[Solve]]:
    """The systems of a phase, those together that need the same factor in the same way."""
    found: dict[tuple, list[Solve]] = {}
    for solve in phase.solves:
        how = key_of(solve), solve.system.is_transposed, solve.system.largest_residual
        found.setdefault(how, []).append(solve)
    return list(found.values())


def uses_factors_again(phases: Phases) -> bool:
    """Whether systems that are not solved at once share the factor of a matrix that varies."""
    first = [together[0] for phase in phases.phases for together in of_one_matrix(phase)]
    keys = [key_of(solve) for solve in first if solve.values not in phases.known]
    return len(set(keys)) < len(keys)


def dropped(phases: Phases) -> list[list[int]]:
    """By phase, the arrays that nothing needs after it."""
    last: dict[int, int] = {}
    for number, phase in enumerate(phases.phases):
        used = [a for solve in phase.solves for a in (solve.values, solve.right, solve.solution)]
        used += [a for repeat in phase.loops for a in (repeat.begin, *repeat.given, repeat.end)]
        last.update(dict.fromkeys((*phase.reads, *phase.writes, *used), number))
    found: list[list[int]] = [[] for _ in phases.phases]
    for array in last.keys() - {*phases.outputs, *phases.known}:
        found[last[array]].append(array)
    return found


def key_of(solve: Solve) -> tuple:
    """Equal for systems that share a factor."""
    return solve.system.matrix_key, solve.values


def columns(right: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A right-hand side in its shape; those of all items of a batch, (items, n k), as columns (n, items k)."""
    if right.ndim == 1:
        return right.reshape(shape)
    return np.moveaxis(right.reshape(len(right), shape[0], -1), 0, 1).reshape(shape[0], -1)


def by_item(columns: np.ndarray, items: int) -> np.ndarray:
    """Columns (n, items k) as (items, n k)."""
    return np.moveaxis(columns.reshape(len(columns), items, -1), 1, 0).reshape(items, -1)


def for_item(array: Array, item: int) -> Array:
    """What an item of a batch has of an array; (n,) is of all items."""
    return array[item] if array.ndim > 1 else array
