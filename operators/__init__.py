"""Geometry operators, written as NumPy code on stacked small arrays.

They run unchanged on NumPy arrays, on CuPy arrays and through `geoopt.compile`.
"""

from .cotan_laplacian import cotan_laplacian as cotan_laplacian

__all__ = ["cotan_laplacian"]
