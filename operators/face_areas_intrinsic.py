"""Areas of triangles, from edge lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def face_areas_intrinsic(lengths: Numeric) -> Any:
    """Areas of triangles with given edge lengths, half of ``igl.doublearea(lengths)``.

    lengths : (m, 3) [m], column c the edge opposite corner c, as `edge_lengths` gives them.
    Returns (m,) [m²]. NaN where the lengths do not obey the triangle inequality.
    Heron's formula in the order of Kahan 2014, Miscalculating Area and Angles of a Needle-like Triangle: accurate
    for needles too, where lengths² would cancel.

    Examples
    --------
    >>> geoopt.operators.face_areas_intrinsic(np.array([[3.0, 4.0, 5.0], [13.0, 14.0, 15.0]]))
    array([ 6., 84.])
    """
    x, y, z = lengths[:, 0], lengths[:, 1], lengths[:, 2]
    x, y = np.maximum(x, y), np.minimum(x, y)
    y, z = np.maximum(y, z), np.minimum(y, z)
    x, y = np.maximum(x, y), np.minimum(x, y)  # x ≥ y ≥ z
    return np.sqrt((x + (y + z)) * (z - (x - y)) * (z + (x - y)) * (x + (y - z))) / 4
