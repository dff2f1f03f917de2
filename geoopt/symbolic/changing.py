"""Ids of arrays that code changes entry by entry, as loops over elements do."""

from __future__ import annotations

import numpy as np

from ..integers.ids import Ids, id_dtype


class Changing:
    """The ids of an array, listed, so that a change of few of them takes no more than those few."""

    def __init__(self, ids: Ids):
        self.shape = ids.shape
        self._listed = np.array(ids.to_array(np.int64)).ravel()
        self._places = Ids.contiguous(0, ids.shape)

    def put(self, places: Ids, ids: Ids) -> None:
        """places : counted in C order"""
        if places.size == 1:
            self._listed[places.lowest] = ids.lowest
        else:
            self._listed[places.to_array().ravel()] = ids.to_array().ravel()

    def entry(self, keys: tuple) -> int:
        """The id of one entry; -1 where the keys are no integers, one for each axis, or out of bounds."""
        place = self._places.entry(keys) if len(keys) == len(self.shape) else -1
        return place if place < 0 else int(self._listed[place])

    def at(self, places: Ids) -> Ids:
        """What the entries at some places are."""
        return Ids.spaced(self._listed[places.to_array()])

    def all(self, count: int) -> Ids:
        """count : of ids that there are"""
        return Ids.explicit(self._listed.astype(id_dtype(count))).reshape(self.shape)
