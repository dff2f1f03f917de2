"""geoopt makes NumPy/SciPy-style geometry code fast for one mesh.

Names are imported from their homes when they are first asked for: `import geoopt` takes as long as this file.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:  # for editors and type checkers; a test holds it and the table below together
    from . import sparse as sparse
    from .batches import batched as batched
    from .chains import Chain as Chain
    from .derivatives import gradient as gradient
    from .derivatives import hessian as hessian
    from .derivatives import hessian_product as hessian_product
    from .derivatives import jacobian as jacobian
    from .derivatives import jvp as jvp
    from .derivatives import value_and_gradient as value_and_gradient
    from .derivatives import vjp as vjp
    from .errors import ArgumentError as ArgumentError
    from .errors import BranchError as BranchError
    from .errors import DeviceError as DeviceError
    from .errors import GeooptError as GeooptError
    from .errors import MeshError as MeshError
    from .errors import MeshWarning as MeshWarning
    from .errors import ShapeError as ShapeError
    from .errors import SolverError as SolverError
    from .errors import TracingError as TracingError
    from .errors import UnsupportedError as UnsupportedError
    from .jitted import jit as jit
    from .loading import load as load
    from .minimization import Minimizer as Minimizer
    from .minimization import Minimum as Minimum
    from .minimization import newton as newton
    from .numeric import Numeric as Numeric
    from .numeric import select as select
    from .options import Options as Options
    from .pipeline import compile as compile
    from .pipeline import devices as devices
    from .program import Program as Program
    from .solvers.solve import solve as solve
    from .symbolic import Symbolic as Symbolic
    from .symbolic.scalar import Scalar as Scalar
    from .trace import block as block
    from .trace import fixed as fixed
    from .views import view as view

_NAMES = {
    "batches": ("batched",),
    "chains": ("Chain",),
    "derivatives": ("gradient", "hessian", "hessian_product", "jacobian", "jvp", "value_and_gradient", "vjp"),
    "errors": (
        "ArgumentError", "BranchError", "DeviceError", "GeooptError", "MeshError", "MeshWarning", "ShapeError",
        "SolverError", "TracingError", "UnsupportedError",
    ),
    "jitted": ("jit",),
    "loading": ("load",),
    "minimization": ("Minimizer", "Minimum", "newton"),
    "numeric": ("Numeric", "select"),
    "options": ("Options",),
    "pipeline": ("compile", "devices"),
    "program": ("Program",),
    "solvers.solve": ("solve",),
    "symbolic": ("Symbolic",),
    "symbolic.scalar": ("Scalar",),
    "trace": ("block", "fixed"),
    "views": ("view",),
}  # fmt: skip
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = ["sparse", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> _Any:
    """A public name, or a module such as ``geoopt.operators``, when it is first asked for."""
    from importlib import import_module
    from importlib.util import find_spec

    if name in _HOMES:
        globals()[name] = found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "apps", "meshes", "operators"})
