"""Stage `share`: equal values of a template are computed and stored once.

Takes: `Kernels`.
Gives: `Kernels` in which no two roots are the same expression.
Ensures: every entry of the outputs is still written once; readers of an intermediate that equals another read that.
Paper: local decomposition. So a symmetric 9×9 block stores 45 values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .graph import Node
from .group import Groups, Place
from .ids import Ids
from .kernel import Kernel, Kernels


def share(kernels: Kernels) -> Kernels:
    groups = kernels.groups
    if not groups.cut.options.has("local"):
        return kernels
    moved: dict[int, int] = {}  # first entry of a lane of the workspace that is not written -> of the one to read
    shared = tuple(_shared(groups, k, moved) for k in kernels.kernels)
    if not moved:
        return replace(kernels, kernels=shared)
    homes = {i: _without_moved(groups, groups.cut.graph.nodes[i], home, moved) for i, home in groups.homes.items()}
    return Kernels(replace(groups, homes=homes), shared)


def _shared(groups: Groups, kernel: Kernel, moved: dict[int, int]) -> Kernel:
    """The kernel with one root for each distinct expression."""
    alike: dict[tuple, list[int]] = {}
    for i, (root, loop) in enumerate(zip(kernel.roots, kernel.root_loops, strict=True)):
        alike.setdefault((id(root), loop), []).append(i)
    if len(alike) == len(kernel.roots):
        return kernel
    roots, writes = [], []
    for numbers in alike.values():
        places = [p for i in numbers for p in kernel.writes[i]]
        lanes = [p for p in places if p.buffer == groups.workspace and _is_whole_lane(groups, p, kernel.size)]
        for lane in lanes[1:]:
            moved[lane.position.offset] = lanes[0].position.offset
        roots.append(kernel.roots[numbers[0]])
        writes.append(tuple(p for p in places if not any(p is lane for lane in lanes[1:])))
    return replace(kernel, roots=tuple(roots), writes=tuple(writes))


def _is_whole_lane(groups: Groups, place: Place, size: int) -> bool:
    """Whether a kernel writes all of a lane of some node, one value per mesh element."""
    position = place.position
    if position.base is not None or (size > 1 and position.strides != (1,)):
        return False
    for index, home in groups.homes.items():
        node = groups.cut.graph.nodes[index]
        if home.buffer == groups.workspace and node.shape and node.shape[0] == size:
            start = position.offset - home.position.offset
            if 0 <= start < node.size and start % size == 0:
                return True
    return False


def _without_moved(groups: Groups, node: Node, home: Place, moved: dict[int, int]) -> Place:
    """Where a node's values are, lanes that equal others at those."""
    if home.buffer != groups.workspace or home.position.base is not None or not node.shape:
        return home
    size = node.shape[0]
    lanes = home.position.offset + size * np.arange(node.lanes)
    read = np.array([moved.get(int(first), int(first)) for first in lanes])
    if (read == lanes).all():
        return home
    offsets = read.reshape(1, *node.shape[1:])
    strides = (1, *(0 for _ in node.shape[1:]))
    return Place(home.buffer, Ids(node.shape, 0, strides, offsets))
