"""How everything here is compiled."""

from __future__ import annotations

SERIAL = {"fastmath": True, "error_model": "numpy", "cache": True, "boundscheck": False}
PARALLEL = {**SERIAL, "parallel": True}
