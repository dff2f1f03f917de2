"""Hashes: of values (integers modulo a prime), of bytes, of ids, and equal keys of arrays.

Paper: algebraic hashing (appendix).
Deviation: values are hashed modulo a prime, where division is exact, not modulo 2^64, where products of many
even factors vanish and quotients are opaque.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import numpy as np
import xxhash

from ..native import compiled
from ..ops import OPS, PRIME

SAMPLE = 4096  # values that are looked at to find the frequent ones
FREQUENT = 32  # ... which are so few that looking for each is faster than sorting

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def digest(*parts: object) -> np.uint64:
    """A 64-bit hash of a tuple of printable things."""
    text = repr(parts).encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))


def residue(*parts: object) -> int:
    """A pseudo-random residue modulo the prime: the value hash of a leaf or of an opaque operation."""
    text = repr(parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little") % PRIME


def number_residue(value: float) -> int:
    """A float is a fraction of integers, so it has an exact residue; NaN and infinity are opaque."""
    if not np.isfinite(value):
        return residue("number", repr(value))
    numerator, denominator = float(value).as_integer_ratio()
    return numerator * pow(denominator, PRIME - 2, PRIME) % PRIME


def residue_of_operation(
    op: str, args: list[int], value: object = None, opaque: Collection[str] = (), is_pair: bool = False
) -> int:
    """The algebraic hash of a result from those of its operands.

    Of rational functions that are equal it is equal, however they are written, also where they differ by rounding, at
    infinities and NaN, and where one divides by 0: callers compare what is read. What has no meaning in the field, or
    is ``opaque``, is a leaf named by its operands; so is a sum that stays as it is, ``is_pair`` (see `rounding`).
    """
    if is_pair and op not in opaque:
        return _residue_of_pair(args[0], args[1] if op == "add" else -args[1])
    is_opaque = op not in OPS or OPS[op].field is None or op in opaque or (op == "divide" and args[1] == 0)
    if op == "subtract" and is_opaque and args[0] > args[1]:
        return PRIME - residue(op, value, args[::-1])  # x - y is exactly -(y - x)
    if is_opaque:
        is_commutative = op in OPS and OPS[op].is_commutative
        return residue(op, value, sorted(args) if is_commutative else args)
    return OPS[op].field(*args) % PRIME  # type: ignore[misc]


def _residue_of_pair(x: int, y: int) -> int:
    """A hash for x + y that no other sum has: that of (-x) + (-y) is the opposite one."""
    ways = [sorted((sign * x % PRIME, sign * y % PRIME)) for sign in (1, -1)]
    found = residue("pair", *min(ways))
    return found if ways[0] < ways[1] else PRIME - found


def mixed(x: np.ndarray) -> np.ndarray:
    """A bijective scrambling of 64-bit hashes (so that sums of hashes identify multisets)."""
    return scrambled(np.asarray(x, np.uint64))


def positions_by_value(values: np.ndarray) -> list[np.ndarray]:
    """Where each distinct value is. Fast where few are frequent: only the others are sorted."""
    frequent = np.unique(values[:: max(len(values) // SAMPLE, 1)])
    if len(frequent) > FREQUENT:
        return _sorted_by_value(values, np.argsort(values, kind="stable"))
    found = [np.flatnonzero(values == v) for v in frequent]
    if sum(map(len, found)) == len(values):
        return found
    is_rare = np.ones(len(values), bool)
    for positions in found:
        is_rare[positions] = False
    rare = np.flatnonzero(is_rare)
    return found + _sorted_by_value(values, rare[np.argsort(values[rare], kind="stable")])


def _sorted_by_value(values: np.ndarray, order: np.ndarray) -> list[np.ndarray]:
    """Positions, in the order of their values, split where those change."""
    ordered = values[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def content(array: np.ndarray) -> int:
    """A 128-bit hash of an array's bytes."""
    return xxhash.xxh3_128_intdigest(np.ascontiguousarray(array).data)


def scrambled(x):
    """`mixed` for one number, in compiled loops and in others: a step of SplitMix64 (Steele, Lea & Flood 2014).

    Nothing simpler: in sums of hashes {x, x} must not be what {2 x} is.
    """
    x = x + _MULTIPLIER
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def add_hashes(keys, ids, salt):
    """keys[i] += hash(ids[i]); sums of such hashes identify multisets, or tuples where the salts differ."""
    start = np.uint64(salt) << np.uint64(40)
    for i in range(len(ids)):
        keys[i] += scrambled(np.uint64(ids[i]) + np.uint64(1) + start)


@compiled
def add_segment_hashes(keys, ids, lengths):
    """keys[s] += the sum of hash(ids[j]) over segment s; one follows another."""
    j = 0
    for s in range(len(lengths)):
        for _ in range(lengths[s]):
            keys[s] += scrambled(np.uint64(ids[j]) + np.uint64(1))
            j += 1


def first_equal(keys: np.ndarray) -> np.ndarray:
    """For each key the position of the first equal one. keys : (n,) uint64, n < 2**31 -> (n,) int32"""
    bits = max((2 * len(keys) - 1).bit_length(), 4)
    first = np.empty(len(keys), np.int32)
    _find_equal(keys, bits, np.full(1 << bits, -1, np.int32), first)
    return first


@compiled
def _find_equal(keys, bits, table, first):
    """table : a hash table of positions, -1 where there is none"""
    mask = np.uint64((1 << bits) - 1)
    for i in range(len(keys)):
        slot = ((keys[i] * _MULTIPLIER) >> np.uint64(64 - bits)) & mask
        while True:
            j = table[slot]
            if j < 0:
                table[slot] = i
                first[i] = i
                break
            if keys[j] == keys[i]:
                first[i] = j
                break
            slot = (slot + np.uint64(1)) & mask
