"""geoopt makes NumPy/SciPy-style geometry code fast for one mesh."""

from typing import Any as _Any

from . import sparse as sparse
from .derivatives import gradient as gradient
from .derivatives import hessian as hessian
from .derivatives import hessian_product as hessian_product
from .derivatives import jacobian as jacobian
from .derivatives import value_and_gradient as value_and_gradient
from .errors import ArgumentError as ArgumentError
from .errors import BranchError as BranchError
from .errors import DeviceError as DeviceError
from .errors import GeooptError as GeooptError
from .errors import MeshError as MeshError
from .errors import ShapeError as ShapeError
from .errors import TracingError as TracingError
from .errors import UnsupportedError as UnsupportedError
from .minimization import Minimum as Minimum
from .minimization import newton as newton
from .numeric import Numeric as Numeric
from .numeric import select as select
from .options import Options as Options
from .pipeline import compile as compile
from .pipeline import devices as devices
from .program import Program as Program
from .symbolic import Symbolic as Symbolic
from .symbolic import functions as _functions  # noqa: F401
from .symbolic.scalar import Scalar as Scalar
from .trace import block as block
from .trace import fixed as fixed
from .view import view as view


def __getattr__(name: str) -> _Any:
    """``geoopt.meshes`` and the like are imported when they are first asked for."""
    import importlib

    if name in ("apps", "meshes", "operators"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
