"""The energy of springs."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def spring_energy(x: Numeric, E: np.ndarray, rest: Numeric, stiffness: Any) -> Any:
    """The energy ½ Σ stiffness (length − rest)² of Hooke's springs between points.

    x : (n, d) positions [m];  E : (m, 2) pairs of points;  rest : (m,) lengths at rest [m]
    stiffness : [N/m], a number or (m,)
    Returns a number [J]. Its gradient is not defined where a spring has length 0.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> print(geoopt.operators.spring_energy(x, np.array([[0, 1]]), np.array([4.0]), 10.0))  # 10/2 (5 - 4)²
    5.0
    """
    stretch = np.linalg.norm(x[E[:, 1]] - x[E[:, 0]], axis=1) - rest
    return 0.5 * np.sum(stiffness * stretch * stretch)
