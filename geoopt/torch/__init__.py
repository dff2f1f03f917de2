"""`geoopt.torch.function`: functions of NumPy's kind that torch runs as compiled programs, and differentiates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("geoopt.torch needs torch: pip install 'geoopt-compiler[torch]'") from None
from torch import Tensor

from ..differentiable.checks import check, traced_example
from ..differentiable.function import Function
from ..errors import ArgumentError, DeviceError
from ..options import Options
from ..results import Part
from ..signature import Argument, ordered
from .matrices import FORMATS, Places, as_scipy, assembled, is_wrapped, values_of
from .operator import TYPES, number_of, program


def function(
    function: Callable, *arguments: Any, options: Options | None = None, matrices: str = "csr", **keywords: Any
) -> Callable:
    """A function of torch's tensors that runs the compiled program of a function of NumPy's.

    function, arguments, keywords : as for `geoopt.compile`: arrays of floats, numbers and the values of sparse matrices
        are variables, everything else (faces, ...) is structure. Tensors may be given as well, sparse ones as CSR or
        COO; what a pattern is, and what `fixed` marks, is as there
    options : switches and thresholds of the programs, see `Options`
    matrices : what sparse results are: "csr" or "coo", sparse tensors, or "values", their values alone, row by row

    The function that it returns takes the variables alone, by place or by name: tensors on the CPU of the shapes of the
    examples, floats or 0-d tensors for numbers, and for a matrix a CSR or COO tensor of its pattern, or the tensor of
    its values, row by row. All are computed with in their common type, float32 or float64, as torch finds it. The
    result has the form of the function's: tensors, 0-d tensors, sparse tensors whose pattern is fixed, and tuples,
    lists, dicts and dataclasses of these; what depends on no variable is there, too.

    It runs as an operator of torch, ``geoopt::program``, and works with `torch.autograd`, hooks, forward mode,
    `torch.func` (``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``, ``hessian``, ``vmap``), `torch.export` and
    `torch.compile`, also with ``fullgraph=True``, but not with ``is_grads_batched``. Derivatives are programs of their
    own, of any order: each is prepared when it is first wanted, for each type, and ``backward`` runs one program, which
    computes only the slopes that are wanted. A batch runs `Program.batched`.

    Sparse results have less of this. `torch.compile` breaks its graph where they are made; `torch.func` and forward
    mode refuse them. The slope of torch's product ``A @ x`` by A is a dense matrix, and second derivatives are lost in
    ``A.values()`` of CSR. So compute products within the function, or take ``matrices="values"``. To compare the
    pattern of a tensor that is given takes as long as a product; values that are given alone are not compared.

    Programs run on the CPU, in the memory of torch's tensors where these are contiguous; results are fresh tensors.
    Errors are geoopt's. Keep the function as long as a graph that torch traced of it: the graph holds only its number.

    Raises ArgumentError for arguments that it cannot take, TracingError where the code cannot be traced, which is when
    the function is first called.

    Examples
    --------
    >>> import torch
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> area = geoopt.torch.function(geoopt.operators.surface_area, V, F)
    >>> x = torch.tensor(V, requires_grad=True)
    >>> area(x).backward()
    >>> np.allclose(torch.sum(x.grad * x).item(), 2 * area(x).item())
    True
    """
    return _Function(function, arguments, keywords, options, matrices)


function._torchdynamo_disable = True  # type: ignore[attr-defined]  # examples are read, which is not traced


class _Function(Function):
    """What `function` returns."""

    module, formats = "geoopt.torch", FORMATS

    def __init__(self, *how: Any):
        super().__init__(*how)
        variables = self._flat.variables
        self._number, self._over = number_of(self._flat), [False] * len(variables)
        self._places = [None if a.pattern is None else Places(a.pattern) for a in variables]
        self._results: dict[int, Places] = {}  # by the identity of a result's pattern
        self._parts: dict[str, Part] = {}  # by type

    def on_host(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if is_wrapped(value):
            raise traced_example("torch", self.module, "the transformations of torch.func")
        value = value.detach().cpu()
        return value.numpy() if value.layout == torch.strided else as_scipy(value)

    def __call__(self, /, *values: Any, **named: Any) -> Any:
        given = ordered(self.__name__, self._flat.variables, values, named)
        arrays = _of_one_type(list(map(self._value, self._flat.variables, self._places, given)))
        found, dtype = program(arrays, self._number, None, self._over), arrays[0].dtype
        self._prepare(dtype)
        return self._parts[str(dtype)].rebuilt(found, self._matrix)

    def _value(self, argument: Argument, places: Places | None, value: Any) -> Any:
        """The tensor, or the float, of a variable's value; ArgumentError where it is none."""
        if isinstance(value, Tensor) and value.device.type not in ("cpu", "meta"):
            raise DeviceError(
                f"variable {argument.name!r} is on {value.device}, geoopt.torch computes on the CPU: give it as x.cpu()"
            )
        if places is not None:
            value = values_of(argument, places, value)
        if isinstance(value, Tensor):
            if value.layout != torch.strided:
                raise ArgumentError(f"variable {argument.name!r} has layout {value.layout}; give a dense tensor")
            check(argument, value.shape, value.dtype, value.is_floating_point(), "torch.func.vmap")
        elif type(value) in (float, int):
            check(argument, (), type(value).__name__, isinstance(value, float), "torch.func.vmap")
        else:
            what = f"variable {argument.name!r} is a {type(value).__name__}"
            raise ArgumentError(f"{what}; give a tensor of shape {argument.shape}, e.g. torch.as_tensor(x)")
        return value

    def _prepare(self, dtype: torch.dtype) -> None:
        if str(dtype) not in self._parts:
            self._parts[str(dtype)] = self._flat.result(TYPES[dtype])

    def _matrix(self, pattern: Any, values: Tensor) -> Tensor:
        return values if self._matrices == "values" else self._assembled(pattern, values)

    def _assembled(self, pattern: Any, values: Tensor) -> Tensor:
        places = self._results.get(id(pattern)) or self._results.setdefault(id(pattern), Places(pattern))
        return assembled(places, values, self._matrices)

    # While torch.compile traces, it calls the first and goes around the second, for it knows no sparse tensors. The
    # functions of torch.compiler that say so would import the compiler.
    _prepare._dynamo_marked_constant = True  # type: ignore[attr-defined]
    _assembled._torchdynamo_disable = True  # type: ignore[attr-defined]


def _of_one_type(values: list[Any]) -> list[Tensor]:
    """Tensors of the common type, as torch finds it: tensors with axes decide, else those without, else floats."""
    first = values[0]
    if all(isinstance(v, Tensor) and v.dtype == first.dtype for v in values):  # mostly
        dtype = first.dtype
    else:
        tensors = [v for v in values if isinstance(v, Tensor)]
        types = [v.dtype for v in tensors if v.ndim] or [v.dtype for v in tensors] or [torch.get_default_dtype()]
        dtype = functools.reduce(torch.promote_types, types)
        values = [torch.as_tensor(v, dtype=dtype, device="cpu") for v in values]
    if dtype not in TYPES:
        raise ArgumentError(f"dtype {dtype} is not supported; give float32 or float64, e.g. x.float()")
    return values
