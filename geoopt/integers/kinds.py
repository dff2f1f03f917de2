"""Kinds of expressions: numbers given as kinds are met, so that arrays of them take few bytes per scalar.

Paper: structural hashing. Deviation: hash-consing, where the paper compares hashes; different kinds never agree.
"""

from __future__ import annotations

import numpy as np

from .gathers import ranked, taken


class Kinds:
    """What is known by its parts: equal parts, equal number."""

    def __init__(self):
        self._known: dict[tuple, int] = {}

    def number(self, *what: object) -> int:
        return self._known.setdefault(what, len(self._known))

    def combined(self, what: tuple, parts: list[np.ndarray], is_commutative: bool = False) -> np.ndarray:
        """The kinds of things made alike of parts: element by element, or one where all are the same.

        what : how they are made;  parts : arrays of integers that broadcast, such as kinds
        """
        sizes = {part.size for part in parts}
        if 0 in sizes:
            return np.zeros(np.broadcast_shapes(*(part.shape for part in parts)), np.uint8)
        if sizes == {1}:
            values = [part.item() for part in parts]
            number = self.number(*what, *(sorted(values) if is_commutative else values))
            return np.full((1,) * max(part.ndim for part in parts), number, np.min_scalar_type(number))
        codes, values = _coded(parts)
        if is_commutative:
            values = np.sort(values, axis=0)
        numbers = np.array([self.number(*what, *each) for each in values.T.tolist()])
        numbers = numbers.astype(np.min_scalar_type(int(numbers.max())))
        if (numbers == numbers[0]).all():
            return numbers[:1].reshape((1,) * codes.ndim)
        return taken(numbers, codes)


def _coded(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A number for each combination of values that occurs, element by element; and the values (parts, combinations)."""
    codes, values = np.zeros((), np.uint8), np.zeros((0, 1), np.int64)
    for part in parts:
        low, high = int(part.min()), int(part.max())
        span, occurring = high - low + 1, np.arange(values.shape[1])
        if span > 1:
            dtype = np.min_scalar_type(values.shape[1] * span)
            places = part.astype(dtype) - dtype.type(low % (1 << 8 * dtype.itemsize))  # modulo the range of the type
            codes = codes.astype(dtype) * dtype.type(span) + places
            codes, occurring = ranked(codes)
        else:
            codes = np.broadcast_to(codes, np.broadcast_shapes(codes.shape, part.shape))
        values = np.vstack([values[:, occurring // span], occurring % span + low])
    return codes, values
