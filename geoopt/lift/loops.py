"""Which short nodes are the work of loops over elements, and which are a few elements' values in array-style code.

Both come many times with the same structure: a loop makes ``V[j] - V[i]`` for each edge, and the inverse of a 3×3
matrix multiplies eighteen pairs of entries. What tells them apart is what they read. The nodes of a loop read other
elements each time, and few at once (the corners of a triangle); the values of one element are read at the same elements
every time, and at as many as there are. A step of time is neither: it reads what the last one made, and so has a
structure of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..graph import Graph, Node
from ..graph.tape import CODES, NAMES
from ..integers.hashing import digest, scrambled
from ..integers.ids import Ids
from ..integers.spacing import evenly
from ..native import compiled
from ..ops import OPS
from .columns import NOTHING, Columns, Piece, joined

MOST_SCALARS = 1024  # of a short node: B D Bᵀ of a brick multiplies so many pairs, those of a tetrahedron are 864
LONGEST = 64  # axis of an element's matrix: arrays with more entries along one are no sign of a loop
FEWEST = 8  # elements of a loop
MOST_READ, FEW_READ = 16, 4  # elements that one node of a loop reads; so few that it is not array-style code
SOME = 4  # entries of a view that are looked at
BITS = 4  # of a thing in a set of few
LONG_TAPE = 500  # from here on compiled loops pay

ADD, SUBTRACT, NEGATIVE = (CODES[n] for n in ("add", "subtract", "negative"))
COMMUTATIVE = np.array([n in OPS and OPS[n].is_commutative for n in NAMES])
OF_CODE = np.array([digest("op", n) for n in NAMES])
_CONSTANT = CODES["constant"]
with np.errstate(over="ignore"):
    OF_CONSTANT = scrambled(OF_CODE[_CONSTANT])  # on the tape or not


@dataclass(frozen=True, eq=False)
class Work:
    """The scalars that are lifted.

    columns : their tape;  elements : (n,) per entry a hash of the elements that it depends on
    is_loop : whether most of them are made by loops over elements
    """

    columns: Columns
    elements: np.ndarray
    is_loop: bool


def work_of(graph: Graph) -> Work | None:
    """What is to be lifted; None where that is nothing."""
    on_tape = np.array([n.tape is not None for n in graph.nodes], bool)
    is_short = np.array([_is_short(n) for n in graph.nodes], bool)
    if not _may_loop(graph, is_short):
        if not on_tape.any():
            return None
        return _work(joined(graph, on_tape))
    columns = joined(graph, on_tape | is_short)
    measures = _Measures(columns)
    mine = on_tape | _made_by_loops(graph, columns, measures)
    if mine.any():
        return _work(joined(graph, mine), True) if mine[is_short].any() else _work(joined(graph, on_tape))
    return None


def _work(columns: Columns, is_loop: bool = False) -> Work:
    if len(columns) < FEWEST:
        return Work(columns, np.zeros(len(columns), np.uint64), is_loop)
    measures = _Measures(columns)
    is_loop = is_loop or len(columns) > LONG_TAPE or measures.are_mostly_alike()
    return Work(columns, measures.elements, is_loop)


def _is_short(node: Node) -> bool:
    return (node.op in OPS or node.op == "constant") and 0 < node.size <= MOST_SCALARS


def _may_loop(graph: Graph, is_short: np.ndarray) -> bool:
    """A cheap test: whether several short nodes of one operation and shape read different elements, as some entries
    tell."""
    small = [n for n in graph.nodes if is_short[n.index] and n.operands and max(n.shape, default=0) <= LONGEST]
    alike = Counter((n.op, n.shape) for n in small)
    if max(alike.values(), default=0) < FEWEST:
        return False
    reads: dict[int, int] = {}
    found: dict[tuple, set[int]] = {}
    for node in graph.nodes:
        if is_short[node.index] and node.operands:
            reads[node.index] = hash(tuple(_some_read(graph, o, reads) for o in node.operands))
            if alike[node.op, node.shape] >= FEWEST:
                found.setdefault((node.op, node.shape), set()).add(reads[node.index])
    return any(len(keys) >= FEWEST for keys in found.values())


def _some_read(graph: Graph, view: Ids, reads: dict[int, int]) -> int:
    """A hash of where some entries of a view are: corners of elements may have the first one in common."""
    listed = [0] if view.base is None else view.base.flat[evenly(view.base.size, SOME)]
    return hash(tuple(_place(graph, view.offset + int(entry), reads) for entry in listed))


def _place(graph: Graph, scalar: int, reads: dict[int, int]) -> int:
    node = graph.node_of(scalar)
    if node.tape is not None:
        return scalar
    step, length = _axis_of_elements(node)
    return hash((reads.get(node.index, node.index), (scalar - node.first) // step % length))


def _axis_of_elements(node: Node) -> tuple[int, int]:
    """The step and the length of the axis that counts elements: the first, but that of coordinates (3, n)."""
    longest = max(range(len(node.shape)), key=lambda axis: node.shape[axis], default=0)
    if not longest or node.shape[0] > 3 or node.shape[longest] < FEWEST:
        return max(node.lanes, 1), max(node.size, 1)
    return int(np.prod(node.shape[longest + 1 :])), node.shape[longest]


def _made_by_loops(graph: Graph, columns: Columns, measures: _Measures) -> np.ndarray:
    """Per node whether it is on the tape because loops make it."""
    kinds: dict[int, set[int]] = {}
    found: list[tuple[int, int]] = []
    for number, piece in enumerate(measures.pieces):
        if piece.node.tape is None and not piece.is_repeated and measures.reads[number] <= MOST_READ:
            kind = int(measures.kinds[piece.begin])
            if piece.node.op == "constant":
                kind = hash((kind, piece.node.shape))
            # what a sum reads it may read of many elements, one after another
            read = number if measures.terms[piece.begin] else measures.read_by(piece)
            kinds.setdefault(kind, set()).add(int(read))
            found.append((number, kind))
    pieces = measures.pieces
    is_loop = graph.is_loop or any(
        len(kinds[kind]) >= FEWEST
        for number, kind in found
        if pieces[number].node.op != "constant" and not measures.terms[pieces[number].begin]
    )
    out = np.zeros(len(graph.nodes), bool)
    for number, kind in found if is_loop else ():
        node = pieces[number].node
        is_few = measures.reads[number] <= FEW_READ if node.op != "constant" else node.size == 1
        out[node.index] = len(kinds[kind]) >= (1 if is_few else 2 if graph.is_loop else FEWEST)
    return out


class _Measures:
    """Of the entries of a tape: which have the same structure, and which elements they depend on.

    kinds, elements : (n,) hashes;  varying : the latter without known numbers, of which all elements may read the same
    pieces : those on the tape;  reads : of each, how many elements it reads at most
    """

    def __init__(self, columns: Columns):
        graph = columns.graph
        self.codes = columns.codes
        self.pieces = [p for p in columns.pieces if p.begin >= 0]
        self.number = {p.node.index: k for k, p in enumerate(self.pieces) if not p.is_repeated}
        count = len(columns)
        self.kinds, self.elements, self.varying = np.zeros((3, count), np.uint64)
        self.reads = np.ones(len(self.pieces), np.int64)
        bounds = [(p.begin, p.end, p.node.tape is None) for p in self.pieces]
        table = np.array(bounds, np.int64).reshape(-1, 3)
        self.terms = np.zeros(count, np.uint64)
        outside = graph.owners(columns.outside)
        with np.errstate(over="ignore"):
            run(_measure, count)(
                table,
                columns.ends,
                *(columns.codes, columns.references),
                *_of_outside(graph, columns.outside, outside),
                *(self.kinds, self.elements, self.varying, self.reads, self.terms),
                *(OF_CODE, COMMUTATIVE, np.empty(MOST_READ + 1, np.uint64)),
            )

    def read_by(self, piece: Piece) -> int:
        """A hash of the elements that a node depends on; of those that known numbers tell where it has no others."""
        of_elements = (np.bitwise_or.reduce(of[piece.begin : piece.end]) for of in (self.varying, self.elements))
        return int(next(of_elements) or next(of_elements))

    def are_mostly_alike(self) -> bool:
        """Whether most entries have the structure of some that read other elements."""
        is_made = self.codes != _CONSTANT
        pairs = np.unique(np.stack([self.kinds[is_made], self.elements[is_made]]), axis=1)
        kinds, distinct = np.unique(pairs[0], return_counts=True)
        return bool(2 * np.isin(self.kinds[is_made], kinds[distinct >= FEWEST]).sum() > is_made.sum())


def run(function, count: int):
    """Compiled where it pays; short tapes are not worth loading compiled code."""
    return function if count > LONG_TAPE else function.python


def _of_outside(graph: Graph, ids: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of scalars outside the tape: hashes of what they are, and of the node and the element that they belong to."""
    kinds, elements = np.zeros(len(ids), np.uint64), np.zeros(len(ids), np.uint64)
    for index in np.unique(owners):
        node, mine = graph.nodes[index], owners == index
        step, length = _axis_of_elements(node)
        kinds[mine] = OF_CONSTANT if node.op == "constant" else digest("node", node.index)
        with np.errstate(over="ignore"):
            elements[mine] = digest(int(index)) + ((ids[mine] - node.first) // step % length).astype(np.uint64)
    with np.errstate(over="ignore"):
        return kinds, np.asarray(_bits(elements), np.uint64)


def is_linear(code):
    return code == ADD or code == SUBTRACT or code == NEGATIVE


def _bits(key):
    """Some of 64 bits that stand for one of few things, so that sets of them are told apart."""
    bits, places = np.uint64(0), scrambled(key)
    for _ in range(BITS):
        bits |= np.uint64(1) << (places & np.uint64(63))
        places = places >> np.uint64(6)
    return bits


def _count_read(begin, end, slot, references, outer_elements, elements, known):
    """How many elements some entries read through one operand, as far as it matters. known : room for them"""
    found = 0
    for i in range(begin, end):
        r = references[i, slot]
        if r == NOTHING or found > MOST_READ:
            continue
        e = elements[r] if r >= 0 else outer_elements[-1 - r]
        is_new = True
        for k in range(found):
            is_new &= known[k] != e
        if is_new:
            known[found] = e
            found += 1
    return found


def _measure_vector(begin, end, kinds, terms):
    """What one operation makes has one structure."""
    kind, mask = np.uint64(0), np.uint64(0)
    for i in range(begin, end):
        kind += kinds[i]
        mask |= terms[i]
    for i in range(begin, end):
        terms[i], kinds[i] = mask, scrambled(mask if mask else kind)


@compiled
def _measure(
    pieces, ends, codes, references, outer_kinds, outer_elements, kinds, elements, varying, reads, terms,
    names, commutes, known,
):  # fmt: skip
    """Fill what entries are and read, in order. terms : of sums, which kinds of terms they have, in bits;  names,
    commutes : by code"""
    for p in range(len(pieces)):
        begin, end, first = pieces[p, 0], pieces[p, 1], pieces[p, 0]
        for i in range(begin, end):
            kind, mask, code = names[codes[i]], np.uint64(0), codes[i]
            for slot in range(3):
                r = references[i, slot]
                if r != NOTHING:
                    k = kinds[r] if r >= 0 else outer_kinds[-1 - r]
                    elements[i] |= elements[r] if r >= 0 else outer_elements[-1 - r]
                    varying[i] |= varying[r] if r >= 0 else outer_elements[-1 - r]
                    mask |= terms[r] if r >= 0 and terms[r] != 0 else _bits(k)
                    salt = np.uint64(0) if commutes[code] else np.uint64(slot + 1) << np.uint64(40)
                    kind += scrambled(k + salt)
            is_sum = is_linear(code)
            terms[i] = mask if is_sum else np.uint64(0)
            kinds[i] = scrambled(mask if is_sum else kind)
            if code == _CONSTANT:
                elements[i] = _bits(np.uint64(p) + (np.uint64(i - begin) << np.uint64(32)))
            if i + 1 == min(ends[i], end):
                if i > first and code != _CONSTANT:
                    _measure_vector(first, i + 1, kinds, terms)
                first = i + 1
        fewest, most = MOST_READ + 1, 0
        for slot in range(2 if pieces[p, 2] and terms[begin] else 3 if pieces[p, 2] else 0):
            if references[begin, slot] != NOTHING:
                count = _count_read(begin, end, slot, references, outer_elements, varying, known)
                fewest, most = min(fewest, count), max(most, count)
        reads[p] = fewest if terms[begin] else most
