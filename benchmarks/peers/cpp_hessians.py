"""C++: forward mode by overloading, TinyAD's approach: every number carries its 6 first and 21 second derivatives.

Compiled by the C++ compiler that is there (`$CXX`, g++ or clang++); ImportError, with the reason, where there is none.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .triangles import triangles

COMPILER = next(filter(None, map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++"))), None)
if COMPILER is None:
    raise ImportError("no C++ compiler is found by $CXX, g++, clang++")
FLAGS = ("-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-shared", "-fPIC")

TEXT = r"""
#include <cstdint>
#include <cstring>
constexpr int K = 6, P = K * (K + 1) / 2;
struct Number {
  double value, slope[K], curve[P];  // of the lower triangle
};
static inline Number number(double v) {
  Number r;
  std::memset(&r, 0, sizeof r);
  r.value = v;
  return r;
}
static inline Number operator+(const Number& a, const Number& b) {
  Number r;
  r.value = a.value + b.value;
  for (int k = 0; k < K; ++k) r.slope[k] = a.slope[k] + b.slope[k];
  for (int k = 0; k < P; ++k) r.curve[k] = a.curve[k] + b.curve[k];
  return r;
}
static inline Number operator-(const Number& a, const Number& b) {
  Number r;
  r.value = a.value - b.value;
  for (int k = 0; k < K; ++k) r.slope[k] = a.slope[k] - b.slope[k];
  for (int k = 0; k < P; ++k) r.curve[k] = a.curve[k] - b.curve[k];
  return r;
}
static inline Number operator*(double a, const Number& b) {
  Number r;
  r.value = a * b.value;
  for (int k = 0; k < K; ++k) r.slope[k] = a * b.slope[k];
  for (int k = 0; k < P; ++k) r.curve[k] = a * b.curve[k];
  return r;
}
static inline Number operator*(const Number& a, const Number& b) {
  Number r;
  r.value = a.value * b.value;
  for (int k = 0; k < K; ++k) r.slope[k] = a.slope[k] * b.value + a.value * b.slope[k];
  for (int i = 0, k = 0; i < K; ++i)
    for (int j = 0; j <= i; ++j, ++k)
      r.curve[k] = a.curve[k] * b.value + a.slope[i] * b.slope[j] + a.slope[j] * b.slope[i] + a.value * b.curve[k];
  return r;
}
static inline Number inverse(const Number& a) {
  Number r;
  r.value = 1 / a.value;
  const double first = -r.value * r.value, second = -2 * first * r.value;
  for (int k = 0; k < K; ++k) r.slope[k] = first * a.slope[k];
  for (int i = 0, k = 0; i < K; ++i)
    for (int j = 0; j <= i; ++j, ++k) r.curve[k] = first * a.curve[k] + second * a.slope[i] * a.slope[j];
  return r;
}
static inline Number energy(const double* x, const int* corner, double area, const double* B) {
  Number J[2][2];
  for (int a = 0; a < 2; ++a)
    for (int c = 0; c < 2; ++c) J[a][c] = number(0);
  for (int i = 0; i < 3; ++i)
    for (int a = 0; a < 2; ++a) {
      Number y = number(x[2 * corner[i] + a]);
      y.slope[2 * i + a] = 1;
      for (int c = 0; c < 2; ++c) J[a][c] = J[a][c] + B[2 * i + c] * y;
    }
  const Number det = J[0][0] * J[1][1] - J[0][1] * J[1][0];
  const Number squares = J[0][0] * J[0][0] + J[0][1] * J[0][1] + J[1][0] * J[1][0] + J[1][1] * J[1][1];
  return area * (squares * (number(1) + inverse(det * det)));
}
extern "C" void faces(const double* x, const int* F, const double* area, const double* B, int64_t m, double* slopes,
                      double* blocks) {
  for (int64_t f = 0; f < m; ++f) {
    const Number e = energy(x, F + 3 * f, area[f], B + 6 * f);
    for (int i = 0; i < K; ++i) {
      slopes[6 * f + i] = e.slope[i];
      for (int j = 0; j <= i; ++j)
        blocks[36 * f + 6 * i + j] = blocks[36 * f + 6 * j + i] = e.curve[i * (i + 1) / 2 + j];
    }
  }
}
extern "C" void assembled(const double* x, const int* F, const double* area, const double* B, const int* indptr,
                          const int* offsets, int64_t m, int64_t n, double* slopes, double* data) {
  std::memset(slopes, 0, 2 * n * sizeof(double));
  std::memset(data, 0, indptr[2 * n] * sizeof(double));
  for (int64_t f = 0; f < m; ++f) {
    const int* corner = F + 3 * f;
    const Number e = energy(x, corner, area[f], B + 6 * f);
    for (int i = 0; i < K; ++i) {
      const int row = 2 * corner[i / 2] + i % 2;
      slopes[row] += e.slope[i];
      for (int j = 0; j < K; ++j)
        data[indptr[row] + offsets[9 * f + 3 * (i / 2) + j / 2] + j % 2] +=
            e.curve[i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i];
    }
  }
}
"""


def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "peer.cpp", Path(folder) / "peer.so"
        source.write_text(TEXT)
        subprocess.run([COMPILER, *FLAGS, source, "-o", library], check=True)
        return ctypes.CDLL(str(library))


def dirichlet(V: np.ndarray, F: np.ndarray) -> dict[str, Callable]:
    """Functions of x (n, 2): gradients (m, 6) and Hessians (m, 36) by triangle; the values of the sparse Hessian."""
    mesh, library = triangles(V, F), _library()
    offsets = mesh.offsets.astype(np.int32)
    slopes, blocks = np.empty((len(F), 6)), np.empty((len(F), 36))
    slope, data = np.empty((len(V), 2)), np.empty(len(mesh.indices))
    rest = (mesh.F, mesh.area, mesh.B)
    m, n = ctypes.c_int64(len(F)), ctypes.c_int64(len(V))

    def call(function, *arguments):
        function(*(ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments))

    def by_triangle(x):
        call(library.faces, x, *rest, m, slopes, blocks)
        return slopes, blocks

    def assembled(x):
        call(library.assembled, x, *rest, mesh.indptr, offsets, m, n, slope, data)
        return slope, data

    return {"by triangle": by_triangle, "assembled": assembled}
