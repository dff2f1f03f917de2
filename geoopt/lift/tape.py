"""What `lift` knows about scalars made one by one: their sums, hashes and depths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Node, Traced
from ..graph.tape import CODES
from ..integers.gathers import ranked
from ..integers.hashing import digest, first_equal, mixed, scrambled
from ..integers.ids import Ids, id_dtype
from ..native import compiled
from ..symbolic.sums import UNROLLED_SUM
from .columns import NOTHING
from .loops import ADD, COMMUTATIVE, FEWEST, NEGATIVE, OF_CODE, OF_CONSTANT, SUBTRACT, Work, is_linear, run

NEAR = 512  # entries of the tape that one element's operations hardly span
LONG_TERM = 3  # so many terms that an element adds to a sum are added up there
KINDS = 32  # of terms of a sum that are told apart
_CONSTANT = CODES["constant"]


class Joined:
    """The tapes of a graph as one, and short nodes between them as if they were on it.

    codes (n,), references (n, 3), places, values, outside: see `columns.Columns`
    kept : the nodes that are long already;  depths : of these, the longest path below them
    roots : the last addition of every sum; its terms, with signs, lie between two offsets (CSR)
    collects : entries that end a sum of terms from many elements
    hashes, depth, is_live, first_use : per entry; what lies inside a sum is not live
    """

    def __init__(self, traced: Traced, work: Work):
        self.traced, self.work = traced, work
        columns = work.columns
        self.codes, self.references, self.places = columns.codes, columns.references, columns.places
        self.values, self.outside, self.size = columns.values, columns.outside, len(columns)
        graph = traced.graph
        on_tape = {p.node.index for p in columns.pieces if p.begin >= 0}
        if not work.is_loop:
            self._share_equal_entries()
        self.kept = [n for n in graph.nodes if n.index not in on_tape and n.op != "variable" and n.tape is None]
        self.depths: dict[int, int] = {n.index: 0 for n in graph.nodes if n.is_leaf or not n.size}
        uses, first_use = self._uses()
        absorbed = np.zeros(self.size, bool)
        self._run(_absorb, self.codes, self.references, uses, absorbed)
        if work.is_loop:
            counted = np.zeros(self.size, np.int64), np.arange(self.size)
            self._run(_keep_long_terms, self.codes, self.references, absorbed, *counted)
        self._list_terms(absorbed)
        self.collects = self.row_of_root >= 0
        self._hash()
        self.collects[self.roots] = self._judged()
        self._hash()
        self.is_live, self.first_use = uses > USED, first_use
        sums = self.row_of_root, self.offsets, self.terms
        self._run(_spread_life, self.references, *sums, self.is_live, self.first_use)

    def _run(self, function, *arguments):
        with np.errstate(over="ignore"):
            return run(function, self.size)(*arguments)

    def _share_equal_entries(self) -> None:
        """Read equal expressions from the first of them. In long loops this is left to `lift`, element by element:
        sharing across elements would blur which values belong to one."""
        known: dict[tuple, int] = {}
        first = list(range(self.size))
        rows: Any = self.references.tolist()
        for i, (code, place) in enumerate(zip(self.codes, self.places, strict=True)):
            row = rows[i]
            operands = [first[r] if r >= 0 else r for r in row]
            key = (int(code), int(place), *(sorted(operands) if COMMUTATIVE[code] else operands))
            first[i] = known.setdefault(key, i)
            self.references[i] = operands

    def _uses(self) -> tuple[np.ndarray, np.ndarray]:
        """How often each entry is read (from elsewhere: more than `USED`), and which reads come first."""
        inside = self.references[self.references >= 0]
        uses = np.bincount(inside, minlength=self.size)
        first_use = np.full(self.size, 2 * self.size)
        views = [o for n in self.kept for o in n.operands] + list(self.traced.outputs)
        position = self.size
        for view in views:
            at = self.entries(view)
            if len(at):
                np.minimum.at(first_use, at, position + np.arange(len(at)))
                position += len(at)
                uses[at] += USED + 1
        return uses, first_use

    def entries(self, view: Ids) -> np.ndarray:
        """The entries of the tape that a view reads, in its order."""
        if not view.size:
            return np.zeros(0, np.int64)
        at = self.work.columns.entries(view.to_array().ravel().astype(np.int64))
        return at[at >= 0]

    # -- sums -------------------------------------------------------------------------------------------

    def _list_terms(self, absorbed: np.ndarray) -> None:
        """The terms of every chain of additions and subtractions, in the order in which they were written."""
        self.row_of_root = np.full(self.size, -1, np.int64)
        of_entries = np.full(self.size, -1, id_dtype(self.size)), np.ones(self.size, np.int8)
        counts = np.zeros(self.size, np.int64)
        self._run(_count_terms, self.codes, self.references, absorbed, *of_entries, counts)
        self.roots = np.flatnonzero(counts)
        self.row_of_root[self.roots] = np.arange(len(self.roots))
        self.offsets = np.append(0, np.cumsum(counts[self.roots]))
        self.terms, self.signs = np.empty(self.offsets[-1], np.int64), np.empty(self.offsets[-1], np.int8)
        rows = absorbed, *of_entries, self.row_of_root, self.offsets[1:].copy()
        self._run(_fill_terms, self.codes, self.references, *rows, self.signs, self.terms)

    def _judged(self) -> np.ndarray:
        """Per root whether its sum collects from many elements: judged for all sums of the same kinds of terms.

        The sums inside an element (a dot product) have the same few numbers of terms, made just before.
        """
        if not len(self.roots):
            return np.zeros(0, bool)
        counts = np.diff(self.offsets)
        is_made = (self.terms >= 0) & (self.codes[np.maximum(self.terms, 0)] != _CONSTANT)
        earliest = np.minimum.reduceat(np.where(is_made, self.terms, self.size), self.offsets[:-1])
        is_far = self.roots - np.minimum(earliest, self.roots) > NEAR
        kind, _ = ranked(first_equal(self.hashes[self.roots]))
        most, total, far = np.zeros(kind.max() + 1), np.bincount(kind), np.bincount(kind, is_far)
        np.maximum.at(most, kind, counts)
        pairs = np.unique(kind * (counts.max() + 1) + counts) // (counts.max() + 1)
        distinct = np.bincount(pairs, minlength=len(total))
        collects = (most > UNROLLED_SUM) | (distinct > 3) | ((most > 3) & (far > total / 2))
        return (collects | self._are_totals(kind, counts, earliest))[kind]

    def _are_totals(self, kind: np.ndarray, counts: np.ndarray, earliest: np.ndarray) -> np.ndarray:
        """Per kind whether its sums are totals over all elements, which may be few: all of them add up many, and are
        under way at the same time."""
        many = np.flatnonzero(counts >= FEWEST)
        lengths = counts[many]
        at = np.repeat(self.offsets[many] - np.append(0, np.cumsum(lengths)[:-1]), lengths) + np.arange(lengths.sum())
        is_inside = self.terms[at] >= 0
        terms, root = self.terms[at][is_inside], np.repeat(many, lengths)[is_inside]
        first = first_equal(mixed(root) + self.work.elements[terms])
        elements = np.bincount(root[first == np.arange(len(first))], minlength=len(counts))
        fewest, begin, end = np.full(kind.max() + 1, 1 << 62), np.zeros(kind.max() + 1), np.full(kind.max() + 1, np.inf)
        np.minimum.at(fewest, kind, elements)
        np.maximum.at(begin, kind, earliest)
        np.minimum.at(end, kind, self.roots)
        return (fewest >= FEWEST) & (begin < end)

    # -- structure --------------------------------------------------------------------------------------

    def _hash(self) -> None:
        """Hashes and depths of all entries, node by node: nodes between the tapes hang on them and they on those.

        A sum counts as the multiset of its kinds of terms, one that collects as their set, whatever their number.
        """
        graph = self.traced.graph
        self.hashes, self.depth = np.zeros(self.size, np.uint64), np.zeros(self.size, np.int64)
        of_outside = graph.owners(self.outside)
        self.hashes_outside = np.array([_of_leaf(n) for n in graph.nodes] or [0], np.uint64)[of_outside]
        depths = np.zeros(len(self.outside), np.int64)
        columns = (
            *(self.codes, self.references),
            *(self.row_of_root, self.offsets, self.terms, self.signs, self.collects, self.work.columns.ends),
            *(self.hashes_outside, depths),
            *(self.hashes, self.depth),
            *(OF_CODE, COMMUTATIVE, np.empty(KINDS, np.uint64)),
        )
        for piece in self.work.columns.pieces:
            node = piece.node
            if piece.begin >= 0:
                self._run(_hash_range, piece.begin, piece.end, *columns)
            elif not node.is_leaf:
                self.depths[node.index] = 1 + max((self._depth_of(o) for o in node.operands), default=0)
                depths[of_outside == node.index] = self.depths[node.index]

    def _depth_of(self, view: Ids) -> int:
        at = self.entries(view)
        below = [self.depths.get(n.index, 0) for n in self.traced.graph.nodes_of(view)]
        return max([int(self.depth[at].max(initial=0)), *below])


USED = 1 << 20  # added to the uses of what is read from elsewhere


def _of_leaf(node: Node) -> np.uint64:
    return OF_CONSTANT if node.op == "constant" else digest("node", node.index)


@compiled
def _absorb(codes, references, uses, absorbed):
    """Mark additions, subtractions and negations that only one sum reads: inner parts of it."""
    for i in range(len(codes) - 1, -1, -1):
        if codes[i] == ADD or codes[i] == SUBTRACT or (codes[i] == NEGATIVE and absorbed[i]):
            for slot in range(2):
                r = references[i, slot]
                if r >= 0 and uses[r] == 1 and is_linear(codes[r]):
                    absorbed[r] = True


@compiled
def _keep_long_terms(codes, references, absorbed, count, begun):
    """Let what adds a sum of many terms, such as an entry of an element's matrix, to another that was begun before, or
    to what that begins with, read it as one term.

    count, begun : of entries, 0 and their own number
    """
    for i in range(len(codes)):
        for slot in range(2 if is_linear(codes[i]) else 0):
            r = references[i, slot]
            if r >= 0 and absorbed[r]:
                count[i] += count[r]
                begun[i] = min(begun[i], begun[r])
            elif r != NOTHING:
                count[i] += 1
    for i in range(len(codes) - 1, -1, -1):
        a, b = references[i, 0], references[i, 1]
        if codes[i] == NEGATIVE and not absorbed[i] and a >= 0:
            absorbed[a] = False  # a negation that is read as one term is no part of a sum, nor is what it negates
        if not is_linear(codes[i]) or b == NOTHING:
            continue
        is_a, is_b = a >= 0 and absorbed[a], b >= 0 and absorbed[b]
        keeps_a = is_a and is_b and count[a] >= LONG_TERM and begun[b] < begun[a]
        keeps_b = is_b and count[b] >= LONG_TERM and (begun[a] < begun[b] if is_a else a < 0 or codes[a] == _CONSTANT)
        if is_a and is_b and count[a] == count[b]:
            keeps_a = keeps_b = keeps_a or keeps_b
        if keeps_a:
            absorbed[a] = False
        if keeps_b:
            absorbed[b] = False


@compiled
def _count_terms(codes, references, absorbed, root_of, sign_of, counts):
    """Count the terms of each sum at its last addition, the root, and note of each addition its root and its sign.

    root_of, sign_of, counts : of entries, -1, ones and zeros
    """
    for i in range(len(codes) - 1, -1, -1):
        if not is_linear(codes[i]) or (codes[i] == NEGATIVE and not absorbed[i]):
            continue
        if not absorbed[i]:
            root_of[i] = i
        for slot in range(2):
            r = references[i, slot]
            if r >= 0 and absorbed[r]:
                root_of[r], sign_of[r] = root_of[i], sign_of_term(codes[i], slot, sign_of[i])
            elif r != NOTHING:
                counts[root_of[i]] += 1


@compiled
def _fill_terms(codes, references, absorbed, root_of, sign_of, row_of_root, place, signs, terms):
    """Per term its sign and what it refers to, sum by sum, those of one in the order of writing.

    place : after the last term of each sum
    """
    for i in range(len(codes) - 1, -1, -1):
        if root_of[i] < 0:
            continue
        row = row_of_root[root_of[i]]
        for slot in range(1, -1, -1):
            r = references[i, slot]
            if r != NOTHING and not (r >= 0 and absorbed[r]):
                place[row] -= 1
                signs[place[row]], terms[place[row]] = sign_of_term(codes[i], slot, sign_of[i]), r


def sign_of_term(code, slot, sign):
    """Of an operand of an addition, a subtraction or a negation that has a sign itself."""
    return -sign if code == NEGATIVE or (slot == 1 and code == SUBTRACT) else sign


def _hash_of_sum(begin, end, terms, signs, is_set, outer_hashes, hashes, own, kinds):
    """Of the multiset of terms, or of their set. kinds : room for those that are told apart"""
    total, found = np.uint64(77 + is_set), 0
    for t in range(begin, end):
        r = terms[t]
        h = scrambled((hashes[r] if r >= 0 else outer_hashes[-1 - r]) + np.uint64(2 + signs[t]))
        is_new = True
        for k in range(found):
            is_new &= kinds[k] != h
        if is_new or not is_set:
            total += h
        if is_new and found < len(kinds):
            kinds[found] = h
            found += 1
    # too many kinds to tell: the sum is a kind of its own
    return total + np.uint64(own if is_set and found == len(kinds) else 0)


def _hash_vector(begin, end, rows, hashes, depth):
    """What one operation makes has one structure, that of the vector; each sum stays what it is."""
    total, deepest = np.uint64(end - begin), 0
    for i in range(begin, end):
        if rows[i] < 0:
            total += hashes[i]
            deepest = max(deepest, depth[i])
    for i in range(begin, end):
        if rows[i] < 0:
            hashes[i], depth[i] = scrambled(total), deepest


@compiled
def _hash_range(
    begin, end, codes, references, rows, offsets, terms, signs, collects, ends, outer_hashes, outer_depths,
    hashes, depth, of_code, commutes, kinds,
):  # fmt: skip
    """Fill hashes and depths of a stretch of the tape from those before and outside. of_code, commutes : by code"""
    first_of_vector = begin
    for i in range(begin, end):
        deepest = 0
        if rows[i] >= 0:
            first, last = offsets[rows[i]], offsets[rows[i] + 1]
            total = _hash_of_sum(first, last, terms, signs, collects[i], outer_hashes, hashes, i, kinds)
            for t in range(first, last):
                deepest = max(deepest, depth[terms[t]] if terms[t] >= 0 else outer_depths[-1 - terms[t]])
        else:
            total = of_code[codes[i]]
            for slot in range(3):
                r = references[i, slot]
                if r != NOTHING:
                    h = hashes[r] if r >= 0 else outer_hashes[-1 - r]
                    deepest = max(deepest, depth[r] if r >= 0 else outer_depths[-1 - r])
                    salt = np.uint64(0) if commutes[codes[i]] else np.uint64(slot + 1) << np.uint64(40)
                    total += scrambled(h + salt)
        hashes[i], depth[i] = scrambled(total), deepest + 1
        if i + 1 == min(ends[i], end) and i > first_of_vector and codes[i] != _CONSTANT:
            _hash_vector(first_of_vector, i + 1, rows, hashes, depth)
        if i + 1 == min(ends[i], end):
            first_of_vector = i + 1


@compiled
def _spread_life(references, rows, offsets, terms, live, first_use):
    """Mark the entries that are needed, given those read from elsewhere; and note who needs each first."""
    for i in range(len(live) - 1, -1, -1):
        if not live[i]:
            continue
        if rows[i] >= 0:
            for t in range(offsets[rows[i]], offsets[rows[i] + 1]):
                if terms[t] >= 0:
                    live[terms[t]] = True
                    first_use[terms[t]] = i
        else:
            for slot in range(3):
                if references[i, slot] >= 0:
                    live[references[i, slot]] = True
                    first_use[references[i, slot]] = i
