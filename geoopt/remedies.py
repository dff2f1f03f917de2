"""What to write instead of what cannot be traced: the last lines of errors, and the notes of the table of coverage."""

from __future__ import annotations

BEFORE = (
    "compute it with NumPy and SciPy before, and give the result as an argument: integer arrays are structure, floats "
    "vary"
)
AROUND = (
    "this goes around a program: compile the function, and give SciPy the program; or take geoopt.newton for minima"
)
SOLVE_OUTSIDE = (
    "systems are solved by geoopt.solve and SciPy's spsolve, factorized, splu and cg; do all else outside: compile a "
    "function that returns the matrix, and give SciPy what the program returns"
)
MATRICES = (
    "make matrices of values with rows and columns, sp.csr_array((values, (rows, cols)), shape), or of diagonals, "
    "scipy.sparse.diags(values); call methods of the symbolic operand: A.multiply(B) where B is known"
)
FOURIER = "transform outside, or multiply by the matrix of the transform"
SCIPY = ("this function of SciPy does not take symbolic values", MATRICES)
# of SciPy's modules; the first that a name begins with
_OF_MODULES = {
    "scipy.sparse.csgraph": BEFORE,
    "scipy.sparse.linalg": SOLVE_OUTSIDE,
    "scipy.sparse": MATRICES,
    "scipy.linalg": SOLVE_OUTSIDE,
    "scipy.optimize": AROUND,
    "scipy.integrate": AROUND,
    "scipy.fft": FOURIER,
}

HOLD = "hold a vertex of each component, geoopt.solve(A, b, fixed=[0], values=0.0); or add a mass to the matrix"
NO_MATRIX = (
    "geoopt.hessian_product and geoopt.gradient need no matrix; for minima, give their programs to "
    "scipy.optimize.minimize(energy, x0, jac=gradient, hessp=product, method='Newton-CG')"
)
OF_LOOPS = (
    "derivatives of a loop that runs as often as values decide are not supported",
    "take a fixed number of turns; or differentiate what the loop solves, as geoopt.solve and geoopt.newton do",
)
CHOOSE = "write np.where(condition, a, b); both sides are kept and chosen per element"
FILL = "put values into an array of floats that the function makes, as by np.zeros; keep all, and choose with np.where"
INTEGERS = "give the integer as an argument of the function: integers are structure"
INDICES = "choose the indices before, and give them as an argument: integer arrays are structure"
ORDER = "np.sort(np.stack([...]), axis=0) orders up to 16 values"
STEPS = "compile one step, and keep the loop in Python around the program; or take a fixed number of steps"
AT_ONCE = f"{CHOOSE}, for all elements at once: functions of small matrices take stacks of them, np.linalg.svd(V[F])"
KEEP_ROWS = "a mask depends on values: keep all rows, and choose with np.where(mask[:, None], a, b)"

# what to write instead of the functions of NumPy whose results depend on values, by their names
_BY_VALUES = {
    "argsort partition argpartition lexsort sort_complex percentile quantile nanmedian nanpercentile "
    "nanquantile": f"np.sort and np.median take axes of up to 16 entries; of longer ones, {BEFORE}",
    "nanargmax nanargmin": "np.max and np.min give the value; choose what belongs to it with np.where",
    "argwhere unique unique_all unique_counts unique_inverse unique_values trim_zeros isin "
    "union1d intersect1d setdiff1d setxor1d": "keep all entries and choose with np.where(condition, a, b); or "
    f"{BEFORE}",
    "searchsorted digitize histogram histogram2d histogramdd histogram_bin_edges": "choose between known "
    f"intervals with np.where or np.select; or {BEFORE}",
    "tobytes tofile dump dumps": "compute with the symbolic array itself, and return it",
}
BY_VALUES = {name: remedy for names, remedy in _BY_VALUES.items() for name in names.split()}
# and instead of others
_REMEDIES = {
    "matrix_rank": "compare np.linalg.svdvals(A) with what counts as nothing",
    "eig eigvals": "np.linalg.eigh decomposes symmetric matrices up to 12x12; solve other systems outside",
    "lstsq": "solve the normal equations, np.linalg.solve(A.mT @ A, A.mT @ b), up to 6x6, where A has full rank; else "
    "add eps * np.eye(k) to A.mT @ A",
    "qr": "orthogonalise columns by products and norms",
    "choose": "choose with np.where or np.select",
    "put_along_axis place putmask": "assign to an index, x[indices] = values, or choose with np.where",
}
_BY_NAME = BY_VALUES | {name: remedy for names, remedy in _REMEDIES.items() for name in names.split()}
_ELSE = "write it with indexing, arithmetic, sums and np.where; `geoopt coverage` lists what is supported"


def of_numpy(called: str) -> str:
    """Instead of a function or an attribute of NumPy that has no answer here."""
    return _BY_NAME.get(own_name(called), _ELSE)


def own_name(called: str) -> str:
    return called.split(".")[-1].rstrip("()")


def of_scipy(module: str) -> str:
    """Instead of a function of one of SciPy's modules, or of their parts."""
    return next((remedy for name, remedy in _OF_MODULES.items() if module.startswith(name)), BEFORE)
