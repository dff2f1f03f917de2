"""Sparse tensors of torch's: their values as a program takes them, and results with a program's pattern."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from ..differentiable.checks import coordinates, other_entries, other_pattern
from ..errors import ArgumentError
from ..signature import Argument

FORMATS = ("csr", "coo", "values")


def as_scipy(value: Tensor) -> Any:
    """An example as a matrix of SciPy's."""
    if value.layout not in (torch.sparse_csr, torch.sparse_coo):
        raise ArgumentError(f"a tensor of layout {value.layout} is no example; give a sparse CSR or COO tensor")
    if value.ndim != 2 or value.dense_dim():
        raise ArgumentError("a matrix with batch or dense axes is no example; give one with two sparse axes")
    if value.layout == torch.sparse_csr:
        index = value.col_indices().numpy(), value.crow_indices().numpy()
        return sp.csr_array((value.values().numpy(), *index), shape=tuple(value.shape))
    value = value.coalesce()
    return sp.coo_array((value.values().numpy(), tuple(value.indices().numpy())), shape=tuple(value.shape))


class Places:
    """Where the entries of a pattern are, row by row, as torch lists them."""

    def __init__(self, pattern: Any):
        rows, columns = coordinates(pattern)
        self.shape = tuple(pattern.shape)
        self.indices = torch.stack([torch.tensor(rows).long(), torch.tensor(columns).long()])
        self.starts = torch.tensor(pattern.indptr).long()

    @property
    def columns(self) -> Tensor:
        return self.indices[1]

    def of(self, matrix: Tensor) -> Tensor:
        """The values of a matrix, sparse or not, at these places."""
        if matrix.layout == torch.strided:
            return matrix[tuple(self.indices)]
        if matrix.layout == torch.sparse_coo:
            matrix = matrix.coalesce()
        if self.are_those_of(matrix):
            return matrix.values()
        matrix = matrix.to_sparse_coo().coalesce()
        if not matrix._nnz():
            return matrix.values().new_zeros(len(self.columns))
        here, there = (rows * self.shape[1] + columns for rows, columns in (self.indices, matrix.indices()))
        order = there.argsort()  # products of torch's have unsorted rows
        found = order[torch.searchsorted(there, here, sorter=order).clamp(max=len(there) - 1)]
        return torch.where(there[found] == here, matrix.values()[found], 0)

    def are_those_of(self, matrix: Tensor) -> bool:
        """Whether a matrix has entries there, and nowhere else. matrix : CSR, or COO and coalesced"""
        if matrix.layout == torch.sparse_coo:
            return torch.equal(matrix.indices(), self.indices)
        starts, columns = matrix.crow_indices().long(), matrix.col_indices().long()
        return torch.equal(starts, self.starts) and torch.equal(columns, self.columns)


class _Assembled(torch.autograd.Function):
    """A sparse tensor of some values.

    Slopes through torch's own constructors take memory of rows times columns for CSR; for COO they are constants to
    torch, so that second derivatives lack terms.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, places: Places, format: str) -> Tensor:
        ctx.places = places
        ctx.set_materialize_grads(False)
        if format == "csr":
            return torch.sparse_csr_tensor(places.starts, places.columns, values, places.shape, check_invariants=False)
        return torch.sparse_coo_tensor(places.indices, values, places.shape, is_coalesced=True, check_invariants=False)

    @staticmethod
    def backward(ctx: Any, slopes: Tensor | None) -> tuple[Tensor | None, None, None]:  # type: ignore[override]
        return None if slopes is None else ctx.places.of(slopes), None, None


def assembled(places: Places, values: Tensor, format: str) -> Tensor:
    """A matrix whose pattern is known."""
    if is_wrapped(values):
        raise ArgumentError(
            "the transformations of torch.func take no sparse tensors: give geoopt.torch.function matrices='values'"
        )
    return _Assembled.apply(values, places, format)  # type: ignore[return-value]


def is_wrapped(value: Tensor) -> bool:
    """Whether a tensor is one within a transformation of `torch.func`."""
    return is_functorch_wrapped_tensor(value)


def values_of(argument: Argument, places: Places, value: Any) -> Any:
    """The values of a variable that is a matrix, row by row.

    value : CSR or COO of the pattern, CSR with sorted entries; or the values themselves

    ArgumentError where it has another pattern.
    """
    remedy = "give a sparse CSR or COO tensor, or its values"
    if not isinstance(value, Tensor):
        raise other_pattern(argument, f"is a {type(value).__name__}", remedy)
    if value.layout == torch.strided:
        if tuple(value.shape) != argument.shape:
            raise other_pattern(argument, f"has shape {tuple(value.shape)}", remedy)
        return value
    if value.layout not in (torch.sparse_csr, torch.sparse_coo):
        raise other_pattern(argument, f"has layout {value.layout}", remedy)
    value = value.coalesce() if value.layout == torch.sparse_coo else value
    if tuple(value.shape) != places.shape or value.dense_dim() or value._nnz() != argument.shape[0]:
        what = f"is a tensor of shape {tuple(value.shape)} with {value._nnz()} entries"
        raise other_pattern(argument, what, "make another function for it")
    if not places.are_those_of(value):
        raise other_entries(argument)
    return value.values()
