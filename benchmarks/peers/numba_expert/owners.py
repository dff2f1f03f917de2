"""Threads that own contiguous ranges of vertices; elements on a border are evaluated by each owner that they touch."""

from __future__ import annotations

import itertools

import numpy as np


def parts_of(n: int, parts: int) -> np.ndarray:
    """Where each part's vertices begin, and the end."""
    return (np.arange(parts + 1) * n) // parts


def owned(elements: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elements that touch each part by their last vertex: those of part p are order[starts[p]:starts[p+1]]."""
    by_last = np.argsort(elements.max(axis=1), kind="stable")
    sorted_elements = elements[by_last]
    lists = [
        by_last[((sorted_elements >= begin) & (sorted_elements < end)).any(axis=1)]
        for begin, end in itertools.pairwise(cuts)
    ]
    return np.concatenate([[0], np.cumsum([len(x) for x in lists])]), np.concatenate(lists).astype(np.int32)
