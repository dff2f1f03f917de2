// Forward mode by overloading, TinyAD's approach: every number carries its 6 first and 21 second derivatives.

#include <algorithm>
#include <cstdint>

namespace {

constexpr int K = 6, P = K * (K + 1) / 2;

struct Number {
    double value, slope[K], curve[P];  // curve: the lower triangle, row by row
};

inline Number operator+(const Number& a, const Number& b) {
    Number r;
    r.value = a.value + b.value;
    for (int k = 0; k < K; ++k) r.slope[k] = a.slope[k] + b.slope[k];
    for (int k = 0; k < P; ++k) r.curve[k] = a.curve[k] + b.curve[k];
    return r;
}

inline Number operator-(const Number& a, const Number& b) {
    Number r;
    r.value = a.value - b.value;
    for (int k = 0; k < K; ++k) r.slope[k] = a.slope[k] - b.slope[k];
    for (int k = 0; k < P; ++k) r.curve[k] = a.curve[k] - b.curve[k];
    return r;
}

inline Number operator*(double a, const Number& b) {
    Number r;
    r.value = a * b.value;
    for (int k = 0; k < K; ++k) r.slope[k] = a * b.slope[k];
    for (int k = 0; k < P; ++k) r.curve[k] = a * b.curve[k];
    return r;
}

inline Number operator*(const Number& a, const Number& b) {
    Number r;
    r.value = a.value * b.value;
    for (int k = 0; k < K; ++k) r.slope[k] = a.slope[k] * b.value + a.value * b.slope[k];
    for (int i = 0, k = 0; i < K; ++i)
        for (int j = 0; j <= i; ++j, ++k)
            r.curve[k] = a.curve[k] * b.value + a.slope[i] * b.slope[j] + a.slope[j] * b.slope[i] + a.value * b.curve[k];
    return r;
}

inline Number inverse(const Number& a) {
    Number r;
    r.value = 1 / a.value;
    const double first = -r.value * r.value, second = -2 * first * r.value;
    for (int k = 0; k < K; ++k) r.slope[k] = first * a.slope[k];
    for (int i = 0, k = 0; i < K; ++i)
        for (int j = 0; j <= i; ++j, ++k) r.curve[k] = first * a.curve[k] + second * a.slope[i] * a.slope[j];
    return r;
}

inline Number energy(const double* x, const int* corner, double area, const double* B) {
    Number J[2][2]{};
    for (int i = 0; i < 3; ++i)
        for (int a = 0; a < 2; ++a) {
            Number y{x[2 * corner[i] + a]};
            y.slope[2 * i + a] = 1;
            for (int c = 0; c < 2; ++c) J[a][c] = J[a][c] + B[2 * i + c] * y;
        }
    const Number det = J[0][0] * J[1][1] - J[0][1] * J[1][0];
    const Number squares = J[0][0] * J[0][0] + J[0][1] * J[0][1] + J[1][0] * J[1][0] + J[1][1] * J[1][1];
    return area * (squares * (Number{1} + inverse(det * det)));
}

}  // namespace

// slopes : (m, 6);  blocks : (m, 21), lower triangles row by row
extern "C" void blocks(const double* x, const int* F, const double* area, const double* B, int64_t m, double* slopes,
                       double* blocks) {
    for (int64_t f = 0; f < m; ++f) {
        const Number e = energy(x, F + 3 * f, area[f], B + 6 * f);
        std::copy(e.slope, e.slope + K, slopes + K * f);
        std::copy(e.curve, e.curve + P, blocks + P * f);
    }
}

// slopes : (n, 2);  data : of the matrix (2n, 2n), whose rows begin at indptr
extern "C" void assembled(const double* x, const int* F, const double* area, const double* B, const int* indptr,
                          const int* offsets, int64_t m, int64_t n, double* slopes, double* data) {
    std::fill(slopes, slopes + 2 * n, 0.0);
    std::fill(data, data + indptr[2 * n], 0.0);
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
