"""Blocks: groups whose members are the same elements, and which have something in common, are one group.

Paper: blocks (explicit intermediate tagging), found here without tags.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from ..cut import Cut
from ..graph import Node
from ..graph.references import lanes
from ..integers.hashing import content
from ..integers.ids import Ids
from ..integers.spacing import evenly
from ..ops import OPS
from . import Group
from .structure import Structure

Shared = Hashable  # what kernels of the same elements may have in common: nodes by index, gathers, terms, tags
NUMBERS: Shared = "numbers"  # what kernels have in common whose values belong to no element
READ = "read"
EXAMPLES = 16  # members by which columns are compared
FEW = 16  # values of groups that are joined only since they read the same
MOST_COMPUTED = 32  # nodes that are looked through for what they read


def blocks(cut: Cut, structure: Structure, groups: list[Group]) -> list[Group]:
    """Join groups of one level whose members are the same elements and share what they compute or gather, terms of
    sums, or a tag; and those of numbers, so that not each is a kernel."""
    tagged = cut.graph.tagged()
    tags = [_tags(cut, g, tagged) for g in groups]
    alike = Counter((g.level, g.size) for g in groups)
    read = functools.cache(lambda node, size: _read_elsewhere(cut, node, size))  # by many groups each
    reach = []
    for own, g in zip(tags, groups, strict=True):
        may_join = structure.options.blocks and alike[g.level, g.size] > 1
        reach.append(own | _elementwise_reach(cut, structure, g, read) if may_join else own)
    read_only = [{key for key in touched if _is_read(key)} for touched in reach]
    found = _joined(
        [[g] for g in groups], [touched - of_reads for touched, of_reads in zip(reach, read_only, strict=True)], None
    )
    # to write many values at once takes longer than to read what is in cache
    of_groups = dict(zip(map(id, groups), read_only, strict=True))
    found = _joined(found, [set().union(*(of_groups[id(g)] for g in members)) for members in found], FEW)
    return [Group(tuple(r for g in members for r in g.roots), members[0].level, members[0].size) for members in found]


@dataclass
class _Joined:
    """Groups that are one block, what they have in common with others, and how many values they are."""

    members: list[Group]
    touched: set[Shared]
    count: int


def _joined(blocks: list[list[Group]], reach: list[set[Shared]], most: int | None) -> list[list[Group]]:
    """Blocks of one level and extent that have something in common as one, of at most so many values."""
    joined: dict[int, _Joined] = {}
    holders: defaultdict[Shared, dict[int, None]] = defaultdict(dict)  # what has a key in common, and has room
    for number, (block, touched) in enumerate(zip(blocks, reach, strict=True)):
        keys: set[Shared] = {(block[0].level, block[0].size, key) for key in touched}
        new = _Joined([], keys, sum(len(g.roots) for g in block))
        for other in sorted({other for key in keys for other in holders.get(key, ())}):
            if most is None or new.count + joined[other].count <= most:
                found = joined.pop(other)
                new = _Joined(new.members + found.members, new.touched | found.touched, new.count + found.count)
                for key in found.touched:
                    del holders[key][other]
        new.members += block
        joined[number] = new
        if most is None or new.count < most:
            for key in new.touched:
                holders[key][number] = None
    return [found.members for found in joined.values()]


def _is_read(key: Shared) -> bool:
    """Whether this is that elements of a node are read."""
    return isinstance(key, tuple) and isinstance(key[0], tuple) and key[0][0] == READ


def _tags(cut: Cut, g: Group, tagged: list[set[int]]) -> set[Shared]:
    """The author's blocks that a group's values belong to."""
    mine = {n.index for r in g.roots for n in cut.graph.nodes_of(r.ids)}
    return {("tag", i) for i, block in enumerate(tagged) if mine <= block}


def _elementwise_reach(
    cut: Cut, structure: Structure, g: Group, read: Callable[[Node, int], set[Shared]]
) -> set[Shared]:
    """The nodes that a group computes, or reads, element by element, what these gather, and the terms of its sums, each
    with which elements are its members; empty where its values are not of the same elements."""
    nodes_of = [structure.graph.nodes_of(r.ids) for r in g.roots]
    if all(not node.shape for nodes in nodes_of for node in nodes):
        return {NUMBERS}
    if any(len(nodes) != 1 or not nodes[0].shape for nodes in nodes_of):
        return set()
    owners = [nodes[0] for nodes in nodes_of]
    elements = {_elements(r.ids, node) for r, node in zip(g.roots, owners, strict=True)}
    if len(elements) > 1:
        return set()

    def is_read(node: Node) -> bool:
        return node.is_leaf or structure.reads(node, g.level)

    reached = _by_element(cut, owners, is_read)
    computed = [node for node in reached if not is_read(node)]
    seen: set[Shared] = {node.index for node in computed}.union(*(read(node, g.size) for node in computed))
    seen.update((READ, node.index) for node in reached if structure.reads(node, g.level))
    found: set[Shared] = {(key, *elements) for key in seen}
    if elements != {None}:
        roots = zip(owners, g.roots, strict=True)
        found.update(((READ, *key),) for node, r in roots for key in _read(cut, node, r.ids, is_read))
    return found


def _read(cut: Cut, node: Node, ids: Ids, is_read: Callable[[Node], bool]) -> Iterator[tuple]:
    """What some scalars of a node are computed of, as far as some of them tell: outputs that loops make one by one may
    be parts of one node."""
    todo = [(node, ids.at(_examples(ids.size)) - node.first)] if ids.size > 1 else []
    for _ in range(MOST_COMPUTED):
        if not todo:
            return
        node, places = todo.pop()
        for operand in node.operands if node.op in OPS else ():
            read = operand.at(places) if operand.ndim == 1 else operand.compose(Ids.explicit(places)).to_array()
            target = cut.graph.node_of(int(read[0]))
            local = read - target.first
            if is_read(target) and target.op != "constant":
                yield target.index, local.tobytes()
            elif not is_read(target) and 0 <= local.min() and local.max() < target.size:
                todo.append((target, local))


def _by_element(cut: Cut, nodes: list[Node], is_read: Callable[[Node], bool]) -> list[Node]:
    """The nodes, what their elements read of the same elements of others, and so on, up to what is read from memory."""
    found: dict[int, Node] = {}
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node.index not in found:
            found[node.index] = node
            if not is_read(node):
                todo += [r.target for r in cut.references[node.index] if r.is_regular]
    return list(found.values())


def _elements(ids: Ids, node: Node) -> int | None:
    """A hash of the elements that scalars of a node belong to; None if these are all of its elements in order."""
    if ids.base is None and ids.size == node.shape[0] and ids.strides[0] >= 0:
        return None
    return content((ids.to_array() - node.first) // node.lanes)


def _read_elsewhere(cut: Cut, node: Node, size: int) -> set[Shared]:
    """What the elements of a node have from others."""
    return _terms(cut, node) if node.op == "segment_sum" else _gathers(cut, node, size)


def _gathers(cut: Cut, node: Node, size: int) -> set[Shared]:
    """Equal for columns that read the same elements of a node, as far as some members tell: joined, they are read
    once, and what is computed of them alike is computed once."""
    chosen = _examples(size)
    found: set[Shared] = set()
    for column in (c for operand in node.operands for c in lanes(operand)):
        if column.base is not None and column.shape == (size,):
            ids = column.at(chosen)
            target = cut.graph.node_of(int(ids[0]))
            found.add(("gather", target.index, ((ids - target.first) // target.lanes).tobytes()))
    return found


@functools.lru_cache(256)
def _examples(size: int) -> np.ndarray:
    """Some members."""
    return evenly(size, EXAMPLES)


def _terms(cut: Cut, node: Node) -> set[Shared]:
    """Equal for sums of the same elements, term by term, of a node or of what is computed of it element by element:
    they share what these read."""
    terms = node.operands[0].to_array()
    where, found = node.segments.key, set()
    for target in cut.graph.nodes_of(node.operands[0]):
        local = terms[target.places_in(terms)] - target.first
        elements = content(local // target.lanes)
        read = _by_element(cut, [target], lambda n: n.is_leaf or n.index in cut.stored)
        found |= {("terms", n.index, where, elements) for n in read}
        if target.index in cut.stored:
            found.add(("terms", target.shape, where, content(local)))
    return found
