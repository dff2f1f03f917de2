"""Nodes whose derivatives are not known."""

from __future__ import annotations

from ..block_ops import BLOCK_OPS, PROJECTIONS
from ..errors import UnsupportedError
from ..graph import Node
from ..remedies import OF_LOOPS


def refuse_unknown(node: Node) -> None:
    """Refuse a node that what is differentiated by reaches. Raises UnsupportedError."""
    if node.op == "while":
        raise UnsupportedError(*OF_LOOPS)
    if node.op in PROJECTIONS:
        what = f"the derivative of a projected Hessian (project={node.op!r}) is not known"
        raise UnsupportedError(what, "differentiate first and project last, or hessian(..., project=None)")
    if node.op in BLOCK_OPS:
        what = "the derivative of eigenvalues of matrices larger than 4×4 is not known"
        raise UnsupportedError(what, "differentiate first and take np.linalg.eigh last")
