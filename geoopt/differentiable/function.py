"""`Function`: what `geoopt.jax.function` and `geoopt.torch.function` return, without what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ArgumentError
from ..options import Options
from ..trace import Fixed
from .flattened import Flattened


class Function:
    """A function of a framework's arrays that runs compiled programs. Its subclasses are called.

    module : where it is made, for messages
    matrices : the format of sparse results, one of `formats`
    """

    module: str
    formats: tuple[str, ...]

    def __init__(
        self, function: Callable, arguments: tuple, keywords: Mapping[str, Any], options: Options | None, matrices: str
    ):
        if not callable(function):
            raise ArgumentError(f"{self.module}.function takes a function, not a {type(function).__name__}")
        if matrices not in self.formats:
            raise ArgumentError(f"matrices={matrices!r}: choose from {', '.join(map(repr, self.formats))}")
        examples = tuple(map(self._example, arguments)), {name: self._example(v) for name, v in keywords.items()}
        self._flat, self._matrices = Flattened(function, *examples, options), matrices
        self.__name__ = self.__qualname__ = self._flat.function.__name__

    def _example(self, value: Any) -> Any:
        return Fixed(self.on_host(value.value)) if isinstance(value, Fixed) else self.on_host(value)

    def on_host(self, value: Any) -> Any:
        """An example as NumPy's or SciPy's."""
        raise NotImplementedError

    def __deepcopy__(self, memo: Any) -> Function:
        """The function itself: models that hold it are copied, programs need not be."""
        return self

    def __repr__(self) -> str:
        return f"<{self.module}.function {self.__name__}({', '.join(a.name for a in self._flat.variables)})>"
