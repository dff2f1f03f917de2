"""NumPy's functions on symbolic arrays: to import this fills the tables of `symbolic`."""

from . import array_calls as array_calls
from . import array_eigenvalues as array_eigenvalues
from . import array_einsum as array_einsum
from . import array_elementwise as array_elementwise
from . import array_filling as array_filling
from . import array_joining as array_joining
from . import array_linalg as array_linalg
from . import array_moving as array_moving
from . import array_norms as array_norms
from . import array_order as array_order
from . import array_products as array_products
from . import array_running as array_running
from . import array_samples as array_samples
from . import array_statistics as array_statistics
from . import array_sums as array_sums
from . import array_types as array_types
from . import condition_index as condition_index
from . import fillable as fillable
from . import scalar as scalar
from . import special as special
from . import subclass as subclass
