"""Columns that differ by a constant are one table."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geoopt.plan.tables import Tables


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.integers(0, 40), st.integers(0, 40))
def test_columns_that_differ_by_a_constant_share_a_table(entries, first, second):
    tables = Tables(7)
    columns = [np.array(entries, np.int32) + np.int32(by) for by in (first, second)]
    addresses = [tables.column(3, column, None) for column in columns]
    assert len(tables.arrays) == 1
    for address, column in zip(addresses, columns, strict=True):
        assert address.buffer == 3 and address.table == 7
        np.testing.assert_array_equal(tables.arrays[0] + address.offset, column)


def test_columns_that_differ_by_more_do_not():
    tables = Tables(7)
    column = np.arange(0, 3000, 3, dtype=np.int32)
    other = column.copy()
    other[-1] += 1
    assert tables.column(3, column, None).table != tables.column(3, other, None).table
    assert tables.column(3, column.astype(np.int64), None).table not in (7, 8)


def test_a_column_is_not_copied_unless_it_is_read_only():
    tables = Tables(0)
    column = np.array([5, 1, 7], np.int32)
    frozen = np.array([9, 2, 2], np.int32)
    frozen.flags.writeable = False
    tables.column(3, column, None)
    tables.column(3, frozen, None)
    assert tables.arrays[0] is column and tables.arrays[1].flags.writeable  # compiled code knows one type of array
    np.testing.assert_array_equal(tables.arrays[1], frozen)
