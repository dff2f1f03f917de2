"""How a chain of sparse products is associated: by cost, not in the order of writing."""

from __future__ import annotations

import functools

from ..integers.patterns import Pattern, row_length

RUN_COST = 4  # of starting to read a row of the right factor, in multiplications


def best_cut(patterns: list[Pattern]) -> int:
    """Where the last product of the cheapest association splits a chain."""
    lengths = functools.cache(lambda begin, end: row_length(tuple(patterns[begin:end])))

    @functools.cache
    def best(begin: int, end: int) -> tuple[float, int]:
        """Cost and cut of the product of the matrices begin..end - 1."""
        if end - begin == 1:
            return 0.0, begin
        options = []
        for cut in range(begin + 1, end):
            entries = patterns[begin].shape[0] * lengths(begin, cut)  # of the left factor: each reads a row
            product = entries * (lengths(cut, end) + RUN_COST)
            options.append((best(begin, cut)[0] + best(cut, end)[0] + product, cut))
        return min(options)

    return best(0, len(patterns))[1]
