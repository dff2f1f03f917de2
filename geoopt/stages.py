"""What stages have in common: each is a function of a record and a context, declared with the forms that it takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .codegen.vectors import Vectors
from .options import Options
from .plan.forms import refuse


@dataclass(frozen=True)
class Context:
    """What a program is made for.

    adds : whether its kernels can add to what others wrote
    by_chunks : whether kernels that write one output can run in one launch, chunk by chunk of it
    vectors : that text is written for; None where there are none
    is_mapped : whether the tables of what was loaded lie in memory as kernels read them, and stay there
    """

    options: Options
    dtype: np.dtype
    adds: bool = False
    by_chunks: bool = False
    vectors: Vectors | None = None
    is_mapped: bool = False

    @property
    def lanes(self) -> int:
        """Members per vector; 1 where there are no vectors, or `Options` have the switch "memory" off."""
        v = self.vectors
        return v.lanes if v and self.options.has("memory") else 1

    @property
    def expanded_lanes(self) -> int:
        """Members per vector where the processor can read neighbours, and spread them over those lanes of a vector that
        a mask has (`runs`); else 0."""
        v = self.vectors
        return v.lanes if v and (v.is_avx512 or v.permutes) and self.options.has("memory") else 0

    @property
    def writes_rows(self) -> bool:
        """Whether what a vector of members writes is transposed, and stored as rows."""
        return self.vectors is not None and self.vectors.is_avx512 and self.options.has("memory")


Stage = Callable[[Any, Context], Any]


def stage(*takes: type, switch: str | None = None) -> Callable[[Callable[[Any, Context], Any]], Stage]:
    """Declares a stage.

    takes : the forms (see `plan.forms`) of records that have any; a record with others is refused
    switch : of the options; without it, the record stays as it is
    """

    def declared(work: Callable[[Any, Context], Any]) -> Stage:
        @functools.wraps(work)
        def run(record: Any, context: Context) -> Any:
            if takes:
                refuse(work.__name__, record.forms(), takes)
            return work(record, context) if switch is None or context.options.has(switch) else record

        return run

    return declared
