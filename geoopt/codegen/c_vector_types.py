"""The vectors of GCC and Clang that `c_vectors` prints with: their types, and the functions on them that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from .numbers import TYPES

TYPEDEFS = """\
#ifndef LANES
#if defined(__AVX512F__)
#define LANES {0}
#elif defined(__AVX__)
#define LANES {1}
#else
#define LANES {2}
#endif
#endif
#define EACH for (int l = 0; l < LANES; ++l)
typedef {scalar} numbers __attribute__((vector_size(LANES * sizeof({scalar}))));
typedef {scalar} unaligned __attribute__((vector_size(LANES * sizeof({scalar})), aligned(sizeof({scalar})), may_alias));
typedef {whole} mask __attribute__((vector_size(LANES * sizeof({scalar}))));
"""
# functions, by name; each calls those before it only
HELPERS = {
    "all": """\
static inline numbers all({scalar} x) {{
  numbers found = {{0}};
  EACH found[l] = x;
  return found;
}}
""",
    "chosen": """\
static inline numbers chosen(mask where, numbers a, numbers b) {{
  return (numbers)(((mask)a & where) | ((mask)b & ~where));
}}
""",
    "absolute": """\
static inline numbers absolute(numbers x) {{ return (numbers)((mask)x & ~(mask)all(-({scalar})0)); }}
""",
    "with_sign": """\
static inline numbers with_sign(numbers x, numbers of) {{
  const mask sign = (mask)all(-({scalar})0);
  return (numbers)(((mask)x & ~sign) | ((mask)of & sign));
}}
""",
    "greatest": """\
static inline numbers greatest(numbers a, numbers b) {{ return chosen((a > b) | (a != a), a, b); }}
""",
    "smallest": """\
static inline numbers smallest(numbers a, numbers b) {{ return chosen((a < b) | (a != a), a, b); }}
""",
    "below": """\
static inline mask below(int64_t number, mask counts) {{
  mask lanes = {{0}};
  EACH lanes[l] = ({whole})number;
  return lanes < counts;
}}
""",
    "least": """\
static inline int64_t least(mask x) {{
  int64_t found = x[0];
  EACH found = x[l] < found ? x[l] : found;
  return found;
}}
""",
}


def definitions(dtype: np.dtype, texts: Iterable[str]) -> list[str]:
    """The types of vectors, and the helpers that some text calls."""
    words = dict(scalar=TYPES[dtype.name], whole=f"int{8 * dtype.itemsize}_t")
    lanes = [bits // (8 * dtype.itemsize) for bits in (512, 256, 128)]
    called = set(re.findall(r"\b(\w+)\(", "".join(texts)))
    found = []
    for name, helper in reversed(HELPERS.items()):
        if name in called:
            found.append(helper.format(**words))
            called.update(re.findall(r"\b(\w+)\(", helper))
    return [TYPEDEFS.format(*lanes, **words), *found[::-1]]
