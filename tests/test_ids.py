"""Views over ids answer indexing exactly as NumPy arrays do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from geoopt.integers.ids import Ids

shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5)


@st.composite
def keys(draw, shape):
    kind = draw(st.sampled_from(["basic", "integers", "boolean", "mixed"]))
    if kind == "basic":
        return draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    if kind == "boolean":
        return draw(hnp.arrays(bool, shape[: draw(st.integers(1, len(shape)))]))
    axis = draw(st.integers(0, len(shape) - 1))
    index = draw(
        hnp.arrays(
            np.int32,
            draw(hnp.array_shapes(max_dims=2, max_side=4)),
            elements=st.integers(-shape[axis], shape[axis] - 1),
        )
    )
    if kind == "integers":
        return (slice(None),) * axis + (index,)
    rest = [draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), 0])) for _ in shape[axis + 1 :]]
    return (*[slice(None)] * axis, index, *rest)


@given(st.data())
def test_indexing_agrees_with_numpy(data):
    shape = data.draw(shapes)
    first = data.draw(st.integers(0, 1000))
    ids, array = Ids.contiguous(first, shape), first + np.arange(np.prod(shape)).reshape(shape)
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(["index", "transpose", "reshape", "broadcast"]))
        if step == "index" and array.ndim and array.size:
            key = data.draw(keys(array.shape))
            ids, array = ids[key], array[key]
        elif step == "transpose":
            axes = tuple(data.draw(st.permutations(range(array.ndim))))
            ids, array = ids.transpose(axes), array.transpose(axes)
        elif step == "reshape":
            ids, array = ids.reshape((array.size,)), array.reshape(-1)
        else:
            ids, array = ids.broadcast_to((2, *array.shape)), np.broadcast_to(array, (2, *array.shape))
        assert ids.shape == array.shape
        np.testing.assert_array_equal(ids.to_array(), array)
        if array.size:
            assert ids.lowest <= array.min() and array.max() <= ids.highest
            check_short_ways(ids, array, data)


def check_short_ways(ids, array, data):
    """One id, the ids as Python's numbers, and some of the last axis."""
    kind = data.draw(st.sampled_from([int, np.int64, np.uint8]))
    place = tuple(kind(data.draw(st.integers(0, n - 1))) for n in array.shape)
    before = tuple(int(k) - n for k, n in zip(place, array.shape, strict=True))
    assert ids.entry(place) == ids.entry(before) == array[place]
    if array.ndim:
        assert ids.entry((*place[:-1], array.shape[-1])) == ids.entry((*place[:-1], 0.0)) == -1
        places = np.array(data.draw(st.lists(st.integers(0, array.shape[-1] - 1), min_size=1, max_size=4)))
        np.testing.assert_array_equal(ids.picked(places).to_array(), array[..., places])
    assert ids.listed((2, *array.shape)) == [*array.ravel(), *array.ravel()]


def test_masks_anywhere_must_fit():
    ids, array = Ids.contiguous(0, (2, 3, 4)), np.arange(24).reshape(2, 3, 4)
    last, both = np.arange(4) % 2 == 0, np.arange(12).reshape(3, 4) % 5 == 0
    for key in [
        (..., last),
        (None, ..., last),
        (..., both),
        (0, both),
        (..., both[:, 0], slice(2)),
        True,
        np.False_,
        np.array(True),
    ]:
        np.testing.assert_array_equal(ids[key].to_array(), array[key])
    for key in [(..., last[:3]), (..., both.T), (..., last[:1], slice(None)), (both, 0), (both, 0, 0)]:
        for indexed in (ids, array):
            with pytest.raises(IndexError):
                indexed[key]


@pytest.mark.parametrize("of_mask", [(0,), (0, 0), (2, 0), (0, 3), (0, 3, 4)])
def test_a_mask_without_entries_selects_nothing(of_mask):
    ids, array = Ids.contiguous(0, (2, 3, 4)), np.arange(24).reshape(2, 3, 4)
    assert ids[np.zeros(of_mask, bool)].shape == array[np.zeros(of_mask, bool)].shape
    with pytest.raises(IndexError):
        ids[np.zeros((0, 5), bool)]


@given(st.data())
def test_compose_is_flat_indexing(data):
    shape = data.draw(shapes)
    view = Ids.contiguous(7, shape)[data.draw(keys(shape))]
    if not view.size:
        return
    positions = Ids.contiguous(0, (view.size,))[:: data.draw(st.sampled_from([1, 2, 3]))]
    if data.draw(st.booleans()):
        positions = Ids.explicit(positions.to_array()[::-1].copy())
    want = view.to_array().ravel()[positions.to_array()]
    np.testing.assert_array_equal(view.compose(positions).to_array(), want)


@given(st.data())
def test_queries_tell_what_the_ids_are(data):
    shape = data.draw(shapes)
    view = Ids.contiguous(7, shape)[data.draw(keys(shape))]
    array = view.to_array()
    flat = array.ravel()
    if array.size:
        assert view.bounds[0] <= array.min() and array.max() <= view.bounds[1]
        if view.is_contiguous():
            np.testing.assert_array_equal(flat, flat[0] + np.arange(flat.size))
        places = np.array(data.draw(st.lists(st.integers(0, flat.size - 1), min_size=1)))
        np.testing.assert_array_equal(view.reshape((view.size,)).at(places), flat[places])
    if array.ndim:
        columns = array.reshape(array.shape[0], -1).T if array.size else [()] * int(np.prod(array.shape[1:]))
        for lane, column in zip(view.lanes, columns, strict=True):
            np.testing.assert_array_equal(lane.to_array(), column)


@given(shapes)
def test_the_ids_of_a_node_are_contiguous(shape):
    ids = Ids.contiguous(7, shape)
    assert ids.is_contiguous() and ids.reshape(shape) is ids and ids.transpose(tuple(range(len(shape)))) is ids
    assert Ids.contiguous(7, shape)[::2].is_contiguous() == (shape[0] <= 2)


@given(st.data())
def test_views_of_numpy_are_views_of_ids(data):
    shape = data.draw(shapes)
    ids, array = Ids.contiguous(7, shape), 7 + np.arange(np.prod(shape)).reshape(shape)
    key = data.draw(keys(shape))
    ids, array = ids[key], array[key]
    functions = [np.atleast_3d, np.flip, np.squeeze, np.transpose, lambda a: np.broadcast_to(a, (2, *a.shape))]
    if array.ndim >= 2:
        functions += [np.rot90, np.diagonal, lambda a: np.moveaxis(a, 0, -1), lambda a: np.diagonal(a, 1, -1, 0)]
    for function in functions:
        np.testing.assert_array_equal(ids.through(function).to_array(), function(array))
    if array.ndim and array.shape[0]:
        for got, want in zip(ids.through(lambda a: np.split(a, [1, 3])), np.split(array, [1, 3]), strict=True):
            np.testing.assert_array_equal(got.to_array(), want)


@given(st.data())
def test_listing_ids_keeps_even_spacing(data):
    shape = data.draw(shapes)
    array = Ids.contiguous(7, shape)[data.draw(keys(shape))].to_array()
    ids = Ids.spaced(array)
    assert ids.shape == array.shape
    np.testing.assert_array_equal(ids.to_array(), array)


def test_listing_ids_finds_affine_views():
    view = Ids.contiguous(9, (50, 3, 2))
    for part in (view, view[::-2, 1], view.transpose((2, 0, 1)), view[7], view[:, :, :1].broadcast_to((50, 3, 4))):
        assert Ids.spaced(part.to_array()).key == part.key
    assert Ids.spaced(view[[3, 1, 4]].to_array()).base.shape == (3, 1, 1)
    assert Ids.spaced(np.zeros((0, 3), np.int32)).shape == (0, 3)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.integers(0, 2))
def test_stack_agrees_with_numpy(firsts, axis):
    parts = [Ids.contiguous(f, (3, 2)) for f in firsts]
    want = np.stack([p.to_array() for p in parts], axis)
    np.testing.assert_array_equal(Ids.stack(parts, axis).to_array(), want)


def test_gathering_rows_keeps_one_integer_per_row():
    V = Ids.contiguous(100, (50, 3))
    F = np.array([[0, 1, 2], [4, 3, 2]], np.int32)
    P = V[F]
    assert P.base.shape == (2, 3, 1)
    assert P[:, 1, 2].strides == (0,) and P[:, 1, 2].base.size == 2


def test_evenly_spaced_indices_give_affine_views():
    rows = Ids.contiguous(5, (40, 3))[2 * np.arange(12).reshape(4, 3)]
    assert rows.base is None and rows.strides == (18, 6, 1) and rows.offset == 5


def test_evenly_spaced_parts_stay_affine():
    assert Ids.stack([Ids.contiguous(k, (4,)) for k in (5, 25, 45)], 1).base is None


def test_unevenly_spaced_parts_stay_affine_along_the_others():
    together = Ids.stack([Ids.contiguous(k, (40,)) for k in (100, 300, 140)], 1)
    assert together.strides == (1, 0) and together.base.shape == (1, 3)
    order = Ids.explicit(np.random.default_rng(0).permutation(120).astype(np.int32))
    want = (np.array([100, 300, 140]) + np.arange(40)[:, None]).ravel()[order.base]
    np.testing.assert_array_equal(together.compose(order).to_array(), want)


def test_views_never_list_their_ids():
    large = Ids.contiguous(0, (2_000_000, 3))  # all of these must be constant-time
    assert large[::2, 1].base is None
    assert large.transpose((1, 0)).reshape((3, 1000, 2000)).base is None
    assert large.broadcast_to((1000, 2_000_000, 3)).size == 6 * 10**9


@pytest.mark.parametrize("key", [(5,), (np.array([0, 9]),), (np.array([-6]),), (0, 0, 0)])
def test_out_of_bounds_is_an_index_error(key):
    with pytest.raises(IndexError):
        Ids.contiguous(0, (5, 2))[key]
