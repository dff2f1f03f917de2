"""Variables that are one of two arrays, lists or objects, as after ``a if x > 0 else b``: choices.

Python has such a variable stand for a or b themselves, so that each sees what is changed by the other's name; a choice
is new. Of this nothing shows while nobody changes either; what would show is refused.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import BranchError

_COPY = "change a copy, as np.array(a) makes"
_UNSEEN = "change what a variable may stand for, where values decide, and what has other names"
_LOST = "read what a variable may have stood for, where values decide, before that was changed"


@dataclass
class Links:
    """Of an array, or an object."""

    sources: list[weakref.ref] = field(default_factory=list)  # what it was chosen between
    choices: list[weakref.ref] = field(default_factory=list)  # that it is a source of


class Lost:
    """In the place of what was put into a choice (`changing.Changing`): it is an error to read it."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape

    def _refuse(self, *_: Any) -> Any:
        raise BranchError(_LOST, remedy=_COPY)

    at = all = entry = put = _refuse


def link(choice: Any, *sources: Any) -> None:
    """Note what a new array was chosen between. sources : owners of memory"""
    for source in sources:
        if source.links is not None:  # without those that are gone: a source may be chosen again and again
            source.links.choices[:] = [c for c in source.links.choices if c() is not None]
            for other in (c() for c in [*source.links.choices]):  # which may be the same source
                if other is not None and other is not choice:
                    link_each(choice, other)
        link_each(choice, source)


def link_each(array: Any, other: Any) -> None:
    """Note that two new arrays may be one."""
    array.links, other.links = array.links or Links(), other.links or Links()
    array.links.sources.append(weakref.ref(other))
    other.links.choices.append(weakref.ref(array))


def may_be(array: Any) -> set[int]:
    """The ids of the arrays that an owner of memory may stand for."""
    found: set[int] = set()
    pending = [array]
    while pending:
        one = pending.pop()
        if one is not None and id(one) not in found:
            found.add(id(one))
            pending += [source() for source in one.links.sources] if getattr(one, "links", None) else []
    return found


def changes(array: Any) -> None:
    """Refuse that an array is changed which is a choice between others that are there still; what may have been this
    array can no longer be read."""
    if any(source() is not None for source in array.links.sources):
        raise BranchError(_UNSEEN, remedy=_COPY)
    for reference in array.links.choices:
        choice = reference()
        if choice is not None:
            choice._changing, choice._version = Lost(choice.shape), choice._version + 1
    array.links = None


_SLOTS = "write dataclass(slots=True, weakref_slot=True)"
_OBJECTS = "change it before the branch, or a copy, as copy.copy(a) makes"
_objects: dict[int, tuple[weakref.ref, Links]] = {}  # by id, those of the author's classes that have links


class _Known(threading.local):
    # by id: choices between lists, those, and known arrays that were chosen between; None where nobody traces
    all: dict[int, Any] | None = None


_KNOWN = _Known()


@contextmanager
def of_one_trace() -> Iterator[None]:
    """Note what `link_known` is given while this is open."""
    before, _KNOWN.all = _KNOWN.all, {}
    try:
        yield
    finally:
        _KNOWN.all = before


def link_known(*values: Any) -> None:
    """Note a choice between two lists, or dictionaries, and those, or arrays of known numbers that were chosen between:
    none of them is to be changed any more."""
    if _KNOWN.all is not None:
        _KNOWN.all.update((id(x), x) for x in values)


def link_objects(choice: Any, *sources: Any) -> None:
    """The same for objects whose attributes were chosen between."""
    links = _links_of(choice)
    for source in sources:
        links.sources.append(weakref.ref(source))
        _links_of(source).choices.append(weakref.ref(choice))


def _links_of(target: Any) -> Links:
    known = _objects.get(id(target))
    if known is None or known[0]() is not target:
        if not hasattr(type(target), "__weakref__"):
            raise BranchError(f"choose between objects of {type(target).__name__}, which has slots", remedy=_SLOTS)
        key = id(target)
        known = _objects[key] = weakref.ref(target, lambda _: _objects.pop(key, None)), Links()
    return known[1]


def is_shared(target: Any) -> bool:
    """Whether an object is a choice between others that are there still, or one of those; of what `link_known` was
    given, whether it was."""
    if id(target) in (_KNOWN.all or ()):
        return True
    reference, links = _objects.get(id(target), (lambda: None, Links()))
    return reference() is target and any(r() is not None for r in (*links.sources, *links.choices))


def changes_object(target: Any) -> None:
    """Refuse that an object or a list is changed which is shared."""
    if is_shared(target):
        raise BranchError(_UNSEEN, remedy=_OBJECTS)
