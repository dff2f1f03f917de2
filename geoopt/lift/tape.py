"""What `lift` knows about scalars made one by one: one tape for all of them, their sums, hashes and depths.

References of the tape are numbers: 0, 1, ... for its own entries, -1, -2, ... for the scalars outside it, and
`NOTHING` where an operation has no such operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph, Node, Traced
from ..graph.tape import CODES, NAMES, NONE
from ..integers.hashing import digest, scrambled
from ..integers.ids import Ids
from ..native import compiled
from ..ops import OPS
from ..symbolic.arithmetic import FEW_SCALARS
from ..symbolic.sums import UNROLLED_SUM

NOTHING = -(1 << 62)
NEAR = 512  # entries of the tape that one element's operations hardly span
LONG_TAPE = 500  # from here on compiled loops pay
KINDS = 32  # of terms of a sum that are told apart
_ADD, _SUBTRACT, _NEGATIVE, _CONSTANT = (CODES[n] for n in ("add", "subtract", "negative", "constant"))
_COMMUTATIVE = np.array([n in OPS and OPS[n].is_commutative for n in NAMES])
_OF_CODE = np.array([digest("op", n) for n in NAMES])


class Joined:
    """The tapes of a graph as one, and short nodes between them as if they were on it.

    codes (n,), references (n, 3), values: as in `graph.tape.Tape`;  outside: the ids read from elsewhere
    starts : per node of the graph where its scalars begin on the tape, or -1
    kept : the nodes that are long already;  depths : of these, the longest path below them
    roots : the last addition of every sum; its terms, with signs, lie between two offsets (CSR)
    collects : entries that end a sum of terms from many elements
    hashes, depth, is_live, first_use : per entry; what lies inside a sum is not live
    """

    def __init__(self, traced: Traced):
        self.traced = traced
        graph = traced.graph
        is_long = sum(len(n.tape) for n in graph.nodes if n.tape is not None) > LONG_TAPE
        self.on_tape = [n.tape is not None or (is_long and _is_short(n)) for n in graph.nodes]
        self._join(graph)
        if not is_long:
            self._share_equal_entries()
        self.kept = [n for n in graph.nodes if not self.on_tape[n.index] and n.op != "variable"]
        self.depths: dict[int, int] = {n.index: 0 for n in graph.nodes if n.is_leaf}
        uses, first_use = self._uses()
        absorbed = np.zeros(self.size, bool)
        self._run(_absorb, self.codes, self.references, uses, absorbed)
        self._list_terms(absorbed)
        self.collects = self.row_of_root >= 0
        self._hash()
        self.collects[self.roots] = self._judged()
        self._hash()
        self.is_live, self.first_use = uses > USED, first_use
        sums = self.row_of_root, self.offsets, self.terms
        self._run(_spread_life, self.references, *sums, self.is_live, self.first_use)

    def _run(self, function, *arguments):
        """Compiled where it pays; short tapes are not worth loading compiled code."""
        with np.errstate(over="ignore"):
            return (function if self.size > LONG_TAPE else function.python)(*arguments)

    # -- joining ----------------------------------------------------------------------------------------

    def _join(self, graph: Graph) -> None:
        codes, operands, values = [np.zeros(0, np.uint8)], [np.zeros((0, 3), np.int64)], [np.zeros(0)]
        self.starts = np.full(len(graph.nodes), -1, np.int64)
        self.size, numbers = 0, 0
        for node in graph.nodes:
            if self.on_tape[node.index]:
                c, o, v = _columns(node)
                o[c == _CONSTANT, 0] += numbers
                self.starts[node.index] = self.size
                self.size, numbers = self.size + len(c), numbers + len(v)
                codes.append(c)
                operands.append(o)
                values.append(v)
        self.codes, self.values = np.concatenate(codes), np.concatenate(values)
        ids = np.concatenate(operands)
        self.places = np.where(self.codes == _CONSTANT, ids[:, 0], 0)
        ids[self.codes == _CONSTANT] = NONE
        self.firsts = np.array(graph.firsts, np.int64)
        self.references = np.full(ids.shape, NOTHING, np.int64)
        owner = graph.owners(ids)
        inside = (ids != NONE) & (self.starts[owner] >= 0)
        self.references[inside] = self.starts[owner[inside]] + ids[inside] - self.firsts[owner[inside]]
        elsewhere = (ids != NONE) & ~inside
        self.outside, number = np.unique(ids[elsewhere], return_inverse=True)
        self.references[elsewhere] = -1 - number

    def _share_equal_entries(self) -> None:
        """Read equal expressions from the first of them. In long loops this is left to `lift`, element by element:
        sharing across elements would blur which values belong to one."""
        known: dict[tuple, int] = {}
        first = list(range(self.size))
        rows: Any = self.references.tolist()
        for i, (code, place) in enumerate(zip(self.codes, self.places, strict=True)):
            row = rows[i]
            operands = [first[r] if r >= 0 else r for r in row]
            key = (int(code), int(place), *(sorted(operands) if _COMMUTATIVE[code] else operands))
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
        graph = self.traced.graph
        if not view.size or not any(self.on_tape[n.index] for n in graph.nodes_of(view)):
            return np.zeros(0, np.int64)
        ids = view.to_array().ravel().astype(np.int64)
        owner = graph.owners(ids)
        at = self.starts[owner] + ids - self.firsts[owner]
        return at[self.starts[owner] >= 0]

    # -- sums -------------------------------------------------------------------------------------------

    def _list_terms(self, absorbed: np.ndarray) -> None:
        """The terms of every chain of additions and subtractions, in the order in which they were written."""
        root, terms, signs = *np.empty((2, 2 * self.size), np.int64), np.empty(2 * self.size, np.int8)
        of_entries = np.zeros(self.size, np.int64), np.ones(self.size, np.int8)
        first = self._run(_list_terms, self.codes, self.references, absorbed, *of_entries, root, signs, terms)
        root, signs, terms = root[first:], signs[first:], terms[first:]
        order = np.argsort(root, kind="stable")
        self.signs, self.terms = signs[order], terms[order]
        self.roots, first = np.unique(root[order], return_index=True)
        self.offsets = np.append(first, len(order))
        self.row_of_root = np.full(self.size, -1, np.int64)
        self.row_of_root[self.roots] = np.arange(len(self.roots))

    def _judged(self) -> np.ndarray:
        """Per root whether its sum collects from many elements: judged for all sums of the same kinds of terms.

        The sums inside an element (a dot product) have the same few numbers of terms, made just before.
        """
        if not len(self.roots):
            return np.zeros(0, bool)
        counts = np.diff(self.offsets)
        earliest = np.minimum.reduceat(np.where(self.terms >= 0, self.terms, self.size), self.offsets[:-1])
        is_far = self.roots - np.minimum(earliest, self.roots) > NEAR
        _, kind = np.unique(self.hashes[self.roots], return_inverse=True)
        most, total, far = np.zeros(kind.max() + 1), np.bincount(kind), np.bincount(kind, is_far)
        np.maximum.at(most, kind, counts)
        pairs = np.unique(kind * (counts.max() + 1) + counts) // (counts.max() + 1)
        distinct = np.bincount(pairs, minlength=len(total))
        collects = (most > UNROLLED_SUM) | (distinct > 3) | ((most > 3) & (far > total / 2))
        return collects[kind]

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
            *(self.row_of_root, self.offsets, self.terms, self.signs, self.collects),
            *(self.hashes_outside, depths),
            *(self.hashes, self.depth),
            *(_OF_CODE, _COMMUTATIVE, np.empty(KINDS, np.uint64)),
        )
        for node in graph.nodes:
            if self.on_tape[node.index]:
                begin = int(self.starts[node.index])
                self._run(_hash_range, begin, begin + node.size, *columns)
            elif not node.is_leaf:
                self.depths[node.index] = 1 + max((self._depth_of(o) for o in node.operands), default=0)
                depths[of_outside == node.index] = self.depths[node.index]

    def _depth_of(self, view: Ids) -> int:
        at = self.entries(view)
        below = [self.depths[n.index] for n in self.traced.graph.nodes_of(view) if not self.on_tape[n.index]]
        return max([int(self.depth[at].max(initial=0)), *below])


USED = 1 << 20  # added to the uses of what is read from elsewhere


def _is_short(node: Node) -> bool:
    return (node.op in OPS or node.op == "constant") and 0 < node.size <= FEW_SCALARS


def _columns(node: Node) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A node's codes, operands and numbers as on a tape."""
    if node.tape is not None:
        return *node.tape.columns(), np.array(node.tape.values)
    codes = np.full(node.size, CODES[node.op], np.uint8)
    operands = np.full((node.size, 3), NONE, np.int64)
    if node.op == "constant":
        operands[:, 0] = np.arange(node.size)
        return codes, operands, node.values.ravel()
    for slot, operand in enumerate(node.operands):
        operands[:, slot] = operand.to_array().ravel()
    return codes, operands, np.zeros(0)


def _of_leaf(node: Node) -> np.uint64:
    return digest("constant") if node.op == "constant" else digest("node", node.index)


def _is_linear(code):
    return code == _ADD or code == _SUBTRACT or code == _NEGATIVE


@compiled
def _absorb(codes, references, uses, absorbed):
    """Mark additions, subtractions and negations that only one sum reads: inner parts of it."""
    for i in range(len(codes) - 1, -1, -1):
        if codes[i] == _ADD or codes[i] == _SUBTRACT or (codes[i] == _NEGATIVE and absorbed[i]):
            for slot in range(2):
                r = references[i, slot]
                if r >= 0 and uses[r] == 1 and _is_linear(codes[r]):
                    absorbed[r] = True


@compiled
def _list_terms(codes, references, absorbed, root_of, sign_of, root, sign, term):
    """Per term: the root of its sum, its sign, what it refers to; terms of one root in the order of writing. Gives the
    place of the first: they are listed from the end.

    root_of, sign_of : of entries, zeros and ones
    """
    at = len(root)
    for i in range(len(codes) - 1, -1, -1):
        if not _is_linear(codes[i]) or (codes[i] == _NEGATIVE and not absorbed[i]):
            continue
        if not absorbed[i]:
            root_of[i] = i
        for slot in range(1, -1, -1):
            r = references[i, slot]
            if r == NOTHING:
                continue
            flips = codes[i] == _NEGATIVE or (slot == 1 and codes[i] == _SUBTRACT)
            s = -sign_of[i] if flips else sign_of[i]
            if r >= 0 and absorbed[r]:
                root_of[r], sign_of[r] = root_of[i], s
            else:
                at -= 1
                root[at], sign[at], term[at] = root_of[i], s, r
    return at


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


@compiled
def _hash_range(
    begin, end, codes, references, rows, offsets, terms, signs, collects, outer_hashes, outer_depths, hashes, depth,
    of_code, commutes, kinds,
):  # fmt: skip
    """Fill hashes and depths of a stretch of the tape from those before and outside. of_code, commutes : by code"""
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
