"""Family `constants`: operations on known numbers."""

from __future__ import annotations

import numpy as np

from ..ops import OPS
from ..template import Expression, Template


def fold(template: Template, e: Expression) -> Expression | None:
    """2 * 3 -> 6, sqrt(4) -> 2"""
    if e.op not in OPS or OPS[e.op].gives_bool or any(a.op != "constant" for a in e.args):
        return None
    with np.errstate(all="ignore"):
        value = OPS[e.op].numpy(*(np.float64(a.value) for a in e.args))
    return template.make("constant", (), float(value))
