"""Loops over the tasks of a sweep, and over what they write and read: see `schedule`."""

from __future__ import annotations

from ..native import compiled


@compiled
def bound(begin, end, tasks, first, last, phase, lowest, highest, latest):
    """The lowest ``first``, the highest ``last`` and the latest ``phase`` of each group of tasks."""
    for group in range(len(begin)):
        task = tasks[begin[group]]
        lowest[group], highest[group], latest[group] = first[task], last[task], phase[task]
        for k in range(begin[group] + 1, end[group]):
            task = tasks[k]
            lowest[group] = min(lowest[group], first[task])
            highest[group] = max(highest[group], last[task])
            latest[group] = max(latest[group], phase[task])


@compiled
def read_last(reader, start, writer, place, last):
    """Move to their last reader when tasks are read last. reader : the places of the tasks that read what those of
    ``writer`` wrote, from each ``start`` on;  last : by place"""
    for k in range(len(reader)):
        for i in range(start[k], start[k + 1]):
            written = place[writer[i]]
            last[written] = max(last[written], reader[k])


@compiled
def meet(listed, ends, when, first, last):
    """Move when entries are added to first and last. listed, ends : the entries of tasks, and where each task's end"""
    begin = 0
    for task in range(len(ends)):
        for k in range(begin, ends[task]):
            first[listed[k]] = min(first[listed[k]], when[task])
            last[listed[k]] = max(last[listed[k]], when[task])
        begin = ends[task]


@compiled
def reach(listed, ends, tasks, first_met, last_met, first, last):
    """Move when tasks meet any other first and last. first_met, last_met : of entries;  listed, ends : see `meet`"""
    begin = 0
    for number in range(len(ends)):
        task = tasks[number]
        for k in range(begin, ends[number]):
            first[task] = min(first[task], first_met[listed[k]])
            last[task] = max(last[task], last_met[listed[k]])
        begin = ends[number]
