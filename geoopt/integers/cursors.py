"""Cursors: terms that are few per member, but that members of one task share in rows.

In a product of sparse matrices, an entry of the left one multiplies a row of the right one, and the results go to
entries that are members of one task, or of two. So a *cursor* goes through each such row by plain vectors, and puts the
terms one after the other; then the members add up what they find there. Instead of two columns that tell what each term
reads, there is one in 16 bits that tells where the term is; cursors have places where they begin, and lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native import compiled
from .cores import divided
from .ids import id_dtype
from .runs import Lists
from .segments import STRIP
from .spacing import evenly

ROOM = 4096  # the most terms of a task, which are on the stack
TRIED = 8  # tasks by which a loop is judged
LENGTH = 4  # the least terms of a cursor on average
MIXING = 0x9E3779B1  # spreads consecutive numbers over a hash table (Knuth, The Art of Computer Programming, 6.4)


@dataclass(frozen=True, eq=False)
class Cursors:
    """The terms of all members.

    first : (strips + 1,) the first cursor of the task that each strip belongs to, and the number of cursors
    firsts : per column, the entry at which each cursor begins;  steps : by how much it moves with each term
    lengths : the terms of each cursor, which are in this order
    starts, positions : the terms of each strip as `ByStrip` has them: where among those of its task
    room : the most terms of a task
    """

    first: np.ndarray
    firsts: list[np.ndarray]
    steps: tuple[int, ...]
    lengths: np.ndarray
    starts: np.ndarray
    positions: np.ndarray
    room: int


def cursors_of(lists: Lists, steps: tuple[int, ...], tasks: np.ndarray) -> Cursors | None:
    """None where terms are no rows, or rows are short.

    steps : per column, 0 where a cursor reads one entry, 1 where it reads consecutive ones
    tasks : (tasks + 1,) the first strip of each task, and where the last ends
    """
    if 0 not in steps or len(tasks) < 2:
        return None
    some = evenly(len(tasks) - 1, TRIED)
    found = _found(lists, steps, tasks[some], tasks[some + 1])
    if found is None or found.lengths.mean() < LENGTH:
        return None
    return _found(lists, steps, tasks[:-1], tasks[1:])


def _found(lists: Lists, steps: tuple[int, ...], begin: np.ndarray, end: np.ndarray) -> Cursors | None:
    """Those of tasks that begin and end with some strips, numbered from 0."""
    columns, key, strips = lists.columns, steps.index(0), np.append(0, np.cumsum(end - begin))
    room = int((lists.starts[end] - lists.starts[begin]).max(initial=0))
    if room == 0 or room > ROOM:
        return None
    cursors, places = np.zeros(len(begin) + 1, np.int64), np.zeros(len(begin) + 1, np.int64)  # before each task
    of_tasks, terms = (lists.counts, lists.starts, begin, end), len(columns[key])
    most = cursors[1:], places[1:]
    divided(len(begin), lambda i, j: _extents(columns[key], *of_tasks, i, j, *most, *_room()), terms)
    np.cumsum(cursors, out=cursors)
    np.cumsum(places, out=places)
    firsts, lengths = np.empty((len(columns), cursors[-1]), columns[key].dtype), np.zeros(cursors[-1], np.uint16)
    first, starts = (np.empty(strips[-1] + 1, id_dtype(int(most[-1]))) for most in (cursors, places))
    first[-1], starts[-1], positions = cursors[-1], places[-1], np.zeros(places[-1], np.uint16)
    how = (np.array(steps, columns[key].dtype), key, cursors, places, first, firsts, lengths, starts, positions)
    fits = divided(len(begin), lambda i, j: _fill(columns, *of_tasks, strips, i, j, *how, *_room(), *_places()), terms)
    return Cursors(first, list(firsts), steps, lengths, starts, positions, room) if all(fits) else None


def _room() -> tuple[np.ndarray, ...]:
    """For the cursor of each term of a task, what each reads, and a hash table of them."""
    return np.empty(ROOM, np.int32), np.empty(ROOM, np.int64), np.empty(2 * ROOM, np.int32)


def _places() -> tuple[np.ndarray, ...]:
    """Room for where cursors of a task begin, and where its terms are."""
    return np.empty(ROOM + 1, np.uint16), np.empty(ROOM, np.uint16)


def _numbered(key, first, last, numbers, known, slots):
    """The cursor of each term of a task, counted from 0; gives how many there are. What cursors read is mostly a range
    of consecutive entries; elsewhere, as in products of transposes, they are numbered as they come."""
    low, high = key[first], key[first]
    for term in range(first, last):
        low, high = min(low, key[term]), max(high, key[term])
    if high - low < last - first:
        for term in range(first, last):
            numbers[term - first] = key[term] - low
        return high - low + 1
    for slot in range(len(slots)):
        slots[slot] = -1
    count = 0
    for term in range(first, last):
        slot = (key[term] * MIXING >> 7) & (len(slots) - 1)
        while slots[slot] >= 0 and known[slots[slot]] != key[term]:
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            slots[slot], known[count] = count, key[term]
            count += 1
        numbers[term - first] = slots[slot]
    return count


@compiled
def _extents(key, counts, term_starts, begin, end, i, j, cursors, places, numbers, known, slots):
    """How many cursors tasks i to j have, and how many places the terms of their strips."""
    for task in range(i, j):
        first, last = term_starts[begin[task]], term_starts[end[task]]
        if last > first:
            cursors[task] = _numbered(key, first, last, numbers, known, slots)
        for strip in range(begin[task], end[task]):
            places[task] += _longest(counts, strip) * STRIP


def _longest(counts, strip):
    """The most terms that a member of a strip has."""
    longest = 0
    for member in range(strip * STRIP, min((strip + 1) * STRIP, len(counts))):
        longest = max(longest, counts[member])
    return longest


@compiled
def _fill(
    columns, counts, term_starts, begin, end, strips, i, j,
    steps, key, cursors, places, first_cursors, firsts, lengths, starts, positions,
    numbers, known, slots, at, found,
):  # fmt: skip
    """Where the cursors of tasks i to j begin, their lengths, and the terms; gives whether all terms follow cursors."""
    for task in range(i, j):
        first, last = term_starts[begin[task]], term_starts[end[task]]
        base, size = cursors[task], cursors[task + 1] - cursors[task]
        own = lengths[base : base + size]
        for strip in range(strips[task], strips[task + 1]):
            first_cursors[strip] = base
        if last > first:
            _numbered(columns[key], first, last, numbers, known, slots)
        for term in range(last - first):
            found[term] = own[numbers[term]]
            own[numbers[term]] += 1
        for c in range(len(columns)):
            if not _follows(columns[c][first:last], steps[c], numbers, found, firsts[c, base : base + size]):
                return False
        at[0] = 0
        for cursor in range(size):
            at[cursor + 1] = at[cursor] + own[cursor]
        for term in range(last - first):
            found[term] += at[numbers[term]]
        _lay_out(found, counts, begin[task], places[task], starts[strips[task] : strips[task + 1]], positions)
    return True


def _follows(column, step, numbers, ranks, firsts):
    """Where the cursors of a task begin in one column; gives whether all terms follow them.

    numbers, ranks : the cursor of each term, and how many terms are before it there
    """
    wrong = 0
    for cursor in range(len(firsts)):  # what has no terms is read, too
        firsts[cursor] = column[0] if len(column) else 0
    for term in range(len(column)):
        if ranks[term] == 0:
            firsts[numbers[term]] = column[term]
    for term in range(len(column)):
        wrong |= column[term] ^ (firsts[numbers[term]] + step * ranks[term])
    return wrong == 0


def _lay_out(found, counts, begin, place, starts, positions):
    """Where a task's terms are, put where the kernel reads them: from ``place`` on. begin : the task's first strip"""
    term = 0
    for strip in range(len(starts)):
        starts[strip], own = place, counts[(begin + strip) * STRIP : (begin + strip + 1) * STRIP]
        longest = _longest(own, 0)
        for lane in range(len(own)):
            for t in range(own[lane]):
                positions[place + lane + t * STRIP] = found[term]
                term += 1
        place += longest * STRIP
