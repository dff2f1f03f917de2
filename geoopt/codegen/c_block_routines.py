"""The functions of the operations of `block_ops` in C and CUDA C, one matrix after the other; `llvm.jacobi` has the
algorithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..block_ops import NEGLIGIBLE, SWEEPS, rounding, side
from .numbers import TYPES, literal

ROTATE = """\
  for (int k = 0; k < {entries}; ++k) sum += fabs(x[k]);
  const {scalar} scale = sum < {tiny} ? {tiny} : sum;
  for (int k = 0; k < {entries}; ++k) {{
    a[k] = x[k] / scale;
    square += a[k] * a[k];
  }}
  for (int i = 0; i < {size}; ++i)
    for (int j = 0; j < {size}; ++j) v[i][j] = i == j;
  for (int sweep = 0; sweep < {sweeps}; ++sweep) {{
    {scalar} rest = 0;
    for (int i = 0; i < {size}; ++i)
      for (int j = 0; j < i; ++j) rest += a[i * (i + 1) / 2 + j] * a[i * (i + 1) / 2 + j];
    if (!(rest > {epsilon} * {epsilon} * square)) break;
    for (int q = 1; q < {size}; ++q)
      for (int p = 0; p < q; ++p) {{
        const int pp = p * (p + 3) / 2, qq = q * (q + 3) / 2, pq = q * (q + 1) / 2 + p;
        const {scalar} d = a[qq] - a[pp], b = 2 * a[pq], h = sqrt(d * d + b * b), y = h + fabs(d);
        if (!(fabs(b) > {small})) continue;
        const {scalar} r = 1 / sqrt(2 * h * y), c = y * r, s = d < 0 ? -b * r : b * r;
        const {scalar} moved = (d < 0 ? fabs(d) - h : h - fabs(d)) / 2;
        a[pp] -= moved;
        a[qq] += moved;
        a[pq] = 0;
        for (int k = 0; k < {size}; ++k) {{
          const {scalar} vp = v[p][k], vq = v[q][k];
          v[p][k] = c * vp - s * vq;
          v[q][k] = s * vp + c * vq;
          if (k == p || k == q) continue;
          const int kp = k < p ? p * (p + 1) / 2 + k : k * (k + 1) / 2 + p;
          const int kq = k < q ? q * (q + 1) / 2 + k : k * (k + 1) / 2 + q;
          const {scalar} ap = a[kp], aq = a[kq];
          a[kp] = c * ap - s * aq;
          a[kq] = s * ap + c * aq;
        }}
      }}
  }}
"""
PROJECT = """\
{kind} void {name}({scalar}* x) {{
  {scalar} a[{entries}], v[{size}][{size}], trace = 0, sum = 0, square = 0;
  for (int i = 0; i < {size}; ++i) trace += fabs(x[i * (i + 3) / 2]);
  for (int k = 0; k < {entries}; ++k) a[k] = x[k];
  bool definite = true;
  for (int j = 0; j < {size} && definite; ++j) {{
    const {scalar} pivot = a[j * (j + 3) / 2] + {shift} * trace;
    definite = pivot > 0;
    for (int i = j + 1; i < {size}; ++i)
      for (int k = j + 1; k <= i; ++k)
        a[i * (i + 1) / 2 + k] -= a[i * (i + 1) / 2 + j] / pivot * a[k * (k + 1) / 2 + j];
  }}
  if (definite) return;
"""
PUT_BACK = """\
  for (int k = 0; k < {entries}; ++k) x[k] += scale - scale;
  for (int p = 0; p < {size}; ++p) {{
    const {scalar} value = a[p * (p + 3) / 2];
    if (value < 0)
      for (int i = 0; i < {size}; ++i)
        for (int j = 0; j <= i; ++j) x[i * (i + 1) / 2 + j] -= {factor} * scale * value * v[p][i] * v[p][j];
  }}
}}
"""
DECOMPOSE = """\
{kind} void {name}({scalar}* x) {{
  {scalar} a[{entries}], v[{size}][{size}], sum = 0, square = 0;
"""
SORT = """\
  for (int p = 0; p < {size}; ++p) x[p] = a[p * (p + 3) / 2] * scale;
  for (int end = {size} - 1; end > 0; --end)
    for (int p = 0; p < end; ++p) {{
      if (!(x[p] > x[p + 1])) continue;
      const {scalar} value = x[p];
      x[p] = x[p + 1];
      x[p + 1] = value;
      for (int i = 0; i < {size}; ++i) {{
        const {scalar} of_p = v[p][i];
        v[p][i] = v[p + 1][i];
        v[p + 1][i] = of_p;
      }}
    }}
  for (int p = 0; p < {size}; ++p) {{
    x[p] += scale - scale;
    for (int i = 0; i < {size}; ++i) x[{size} + i * {size} + p] = v[p][i] + (scale - scale);
  }}
}}
"""


def _function(text: str, factor: float = 0.0) -> Callable[[str, int, np.dtype, str], str]:
    """Gives the text of a function for lower triangles of so many entries. kind : what a function begins with"""

    def of(name: str, entries: int, dtype: np.dtype, kind: str) -> str:
        size, epsilon = side(entries), float(np.finfo(dtype).eps)
        numbers = {
            "shift": rounding(size, dtype),
            "tiny": float(np.finfo(dtype).tiny),
            "epsilon": epsilon,
            "small": NEGLIGIBLE * epsilon,
            "factor": factor,
        }
        texts = {key: literal(value, dtype) for key, value in numbers.items()}
        return text.format(
            kind=kind, name=name, scalar=TYPES[dtype.name], entries=entries, size=size, sweeps=SWEEPS, **texts
        )

    return of


ROUTINES = {
    "psd": _function(PROJECT + ROTATE + PUT_BACK, 1.0),
    "abs": _function(PROJECT + ROTATE + PUT_BACK, 2.0),
    "eigen": _function(DECOMPOSE + ROTATE + SORT),
}
