"""geoopt makes NumPy/SciPy-style geometry code fast for one mesh."""

from . import array_filling as array_filling
from . import array_linalg as array_linalg
from . import sparse as sparse
from .derivatives import gradient as gradient
from .derivatives import hessian as hessian
from .derivatives import hessian_product as hessian_product
from .derivatives import jacobian as jacobian
from .derivatives import value_and_gradient as value_and_gradient
from .errors import ArgumentError as ArgumentError
from .errors import BranchError as BranchError
from .errors import GeooptError as GeooptError
from .errors import MeshError as MeshError
from .errors import ShapeError as ShapeError
from .errors import TracingError as TracingError
from .errors import UnsupportedError as UnsupportedError
from .numeric import Numeric as Numeric
from .numeric import select as select
from .options import Options as Options
from .pipeline import compile as compile
from .program import Program as Program
from .scalar import Scalar as Scalar
from .symbolic import Symbolic as Symbolic
from .trace import block as block
from .trace import fixed as fixed
from .view import view as view
