"""The names that rewritten code calls."""

# ruff: noqa: F401
from builtins import slice

from ...symbolic.guards import made
from ..choices import NOTHING as UNSET
from .changes import call, in_place, set_attribute, store
from .conditions import (
    Branch,
    assertion,
    both,
    choice,
    compared,
    complaint,
    either,
    inverse,
    none,
    returned,
    same,
)
from .while_loops import For, While
