// What research code does: loops over elements, dense 3x3 blocks, triplets, Eigen's assembly and products.
// Matrices are handles; every function is there for double (_d) and for float (_s).

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <vector>

namespace {

template <class T> using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor>;
template <class T> using Triplets = std::vector<Eigen::Triplet<T>>;
template <class T> using Vec = Eigen::Matrix<T, 3, 1>;
template <class T> using Mat = Eigen::Matrix<T, 3, 3>;
template <class T> using Points = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 3, Eigen::RowMajor>>;

template <class T> Matrix<T>* assembled(int n, const Triplets<T>& triplets) {
    auto* matrix = new Matrix<T>(n, n);
    matrix->setFromTriplets(triplets.begin(), triplets.end());
    return matrix;
}

template <class T> Vec<T> point(const Points<T>& V, int i) { return V.row(i).transpose(); }

template <class T> void add_edge(Triplets<T>& L, int i, int j, T w) {
    L.emplace_back(i, j, w);
    L.emplace_back(j, i, w);
    L.emplace_back(i, i, -w);
    L.emplace_back(j, j, -w);
}

template <class T> void cotan(int n, int m, const T* v, const int* F, Matrix<T>** L, Matrix<T>** M) {
    Points<T> V(v, n, 3);
    Triplets<T> stiffness, mass;
    stiffness.reserve(12 * m), mass.reserve(3 * m);
    for (int f = 0; f < m; ++f) {
        const int* c = F + 3 * f;
        for (int k = 0; k < 3; ++k) {
            int i = c[k], j = c[(k + 1) % 3], o = c[(k + 2) % 3];
            Vec<T> a = point(V, i) - point(V, o), b = point(V, j) - point(V, o);
            T twice = a.cross(b).norm();
            add_edge<T>(stiffness, i, j, a.dot(b) / twice / 2);
            mass.emplace_back(o, o, twice / 6);
        }
    }
    *L = assembled<T>(n, stiffness), *M = assembled<T>(n, mass);
}

template <class T> Vec<T> circumcentre(const Vec<T>& a, const Vec<T>& b, const Vec<T>& c) {
    T l0 = (b - c).squaredNorm(), l1 = (a - c).squaredNorm(), l2 = (a - b).squaredNorm();
    Vec<T> w(l0 * (l1 + l2 - l0), l1 * (l2 + l0 - l1), l2 * (l0 + l1 - l2));
    return (w[0] * a + w[1] * b + w[2] * c) / w.sum();
}

template <class T> void dual_laplacian(int n, int m, const T* v, const int* tets, Matrix<T>** L, Matrix<T>** M) {
    static const int turn[4][4] = {{-1, 2, 3, 1}, {3, -1, 0, 2}, {1, 3, -1, 0}, {2, 0, 1, -1}};
    Points<T> V(v, n, 3);
    Triplets<T> stiffness, mass;
    stiffness.reserve(48 * m), mass.reserve(24 * m);
    for (int t = 0; t < m; ++t) {
        const int* c = tets + 4 * t;
        Vec<T> p[4] = {point(V, c[0]), point(V, c[1]), point(V, c[2]), point(V, c[3])};
        Mat<T> A;
        Vec<T> b;
        for (int k = 0; k < 3; ++k) {
            A.row(k) = (p[k + 1] - p[0]).transpose();
            b[k] = p[k + 1].squaredNorm() - p[0].squaredNorm();
        }
        Vec<T> centre = A.inverse() * b / 2;
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) {
                if (i == j) continue;
                Mat<T> D;
                D.row(0) = (p[j] - p[i]).transpose() / 2;
                D.row(1) = (circumcentre<T>(p[i], p[j], p[turn[i][j]]) - p[i]).transpose();
                D.row(2) = (centre - p[i]).transpose();
                T volume = D.determinant() / 6;
                add_edge<T>(stiffness, c[i], c[j], 6 * volume / (p[i] - p[j]).squaredNorm());
                mass.emplace_back(c[i], c[i], volume);
                mass.emplace_back(c[j], c[j], volume);
            }
    }
    *L = assembled<T>(n, stiffness), *M = assembled<T>(n, mass);
}

// out: (n, 3) right-hand side; R: (n, 3, 3) rotations
template <class T>
void arap(int n, const T* v, const T* v_rest, const int* offsets, const int* neighbour, const T* weight, T* R, T* out) {
    Points<T> P(v, n, 3), V(v_rest, n, 3);
    for (int i = 0; i < n; ++i) {
        Mat<T> S = Mat<T>::Zero();
        for (int e = offsets[i]; e < offsets[i + 1]; ++e)
            S += weight[e] * (P.row(i) - P.row(neighbour[e])).transpose() * (V.row(i) - V.row(neighbour[e]));
        Eigen::JacobiSVD<Mat<T>> svd(S, Eigen::ComputeFullU | Eigen::ComputeFullV);
        Mat<T> U = svd.matrixU();
        if ((U * svd.matrixV().transpose()).determinant() < 0) U.col(2) *= -1;
        Eigen::Map<Mat<T>>(R + 9 * i) = U * svd.matrixV().transpose();
    }
    for (int i = 0; i < n; ++i) {
        Vec<T> b = Vec<T>::Zero();
        for (int e = offsets[i]; e < offsets[i + 1]; ++e) {
            int j = neighbour[e];
            Mat<T> both = Eigen::Map<const Mat<T>>(R + 9 * i) + Eigen::Map<const Mat<T>>(R + 9 * j);
            b += weight[e] / 2 * both * (V.row(i) - V.row(j)).transpose();
        }
        Eigen::Map<Vec<T>>(out + 3 * i) = b;
    }
}

// constants: stretch, its damping, shear, its damping, bending, its damping, mass, h; B: (m, 3, 2); bend: constant
template <class T>
void cloth_system(int n, int m, const T* xs, const T* vs, const int* F, const T* Bs, const T* area, const T* constants,
                  const T* gravity, const Matrix<T>* bend, Matrix<T>** result, T* b) {
    const T kst = constants[0], dst = constants[1], ksh = constants[2], dsh = constants[3], kb = constants[4],
            db = constants[5], mass = constants[6], h = constants[7];
    Points<T> X(xs, n, 3), V(vs, n, 3);
    Eigen::Matrix<T, Eigen::Dynamic, 3, Eigen::RowMajor> force = kb * (*bend * X);
    force.rowwise() += mass * Eigen::Map<const Vec<T>>(gravity).transpose();
    Triplets<T> triplets;
    triplets.reserve(81 * m + 3 * n + 3 * bend->nonZeros());
    for (int f = 0; f < m; ++f) {
        const int* c = F + 3 * f;
        const T a = area[f];
        Eigen::Map<const Eigen::Matrix<T, 3, 2, Eigen::RowMajor>> B(Bs + 6 * f);
        Eigen::Matrix<T, 3, 2> J = Eigen::Matrix<T, 3, 2>::Zero();
        for (int i = 0; i < 3; ++i) J += point(X, c[i]) * B.row(i);
        T N[2] = {J.col(0).norm(), J.col(1).norm()};
        Vec<T> unit[2] = {J.col(0) / N[0], J.col(1) / N[1]};
        T along[2], pull[2], across, C = a * J.col(0).dot(J.col(1)), rate = 0;
        Vec<T> shear[3];
        for (int i = 0; i < 3; ++i) {
            shear[i] = a * (B(i, 0) * J.col(1) + B(i, 1) * J.col(0));
            rate += shear[i].dot(point(V, c[i]));
        }
        across = ksh * C + dsh * rate;
        for (int k = 0; k < 2; ++k) {
            pull[k] = kst * a * (N[k] - 1), along[k] = pull[k];
            for (int i = 0; i < 3; ++i) along[k] += dst * a * B(i, k) * unit[k].dot(point(V, c[i]));
        }
        for (int i = 0; i < 3; ++i) {
            for (int k = 0; k < 2; ++k) force.row(c[i]) -= a * B(i, k) * pull[k] * unit[k].transpose();
            force.row(c[i]) -= ksh * C * shear[i].transpose();
            for (int j = 0; j < 3; ++j) {
                Mat<T> D = -dsh * shear[i] * shear[j].transpose(), K = -ksh * shear[i] * shear[j].transpose();
                for (int k = 0; k < 2; ++k) {
                    Mat<T> square = unit[k] * unit[k].transpose();
                    T BB = B(i, k) * B(j, k);
                    D -= dst * a * a * BB * square;
                    K -= kst * a * a * BB * square + a * BB * along[k] / N[k] * (Mat<T>::Identity() - square);
                }
                K -= a * (B(i, 0) * B(j, 1) + B(i, 1) * B(j, 0)) * across * Mat<T>::Identity();
                Mat<T> A = -h * (D + h * K);
                for (int p = 0; p < 3; ++p)
                    for (int q = 0; q < 3; ++q) triplets.emplace_back(3 * c[i] + p, 3 * c[j] + q, A(p, q));
            }
        }
    }
    for (int i = 0; i < n; ++i)
        for (typename Matrix<T>::InnerIterator e(*bend, i); e; ++e)
            for (int p = 0; p < 3; ++p) triplets.emplace_back(3 * i + p, 3 * e.col() + p, -h * (db + h * kb) * e.value());
    for (int i = 0; i < 3 * n; ++i) triplets.emplace_back(i, i, mass);
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 3, Eigen::RowMajor>>(b, n, 3) = mass * V + h * force;
    *result = assembled<T>(3 * n, triplets);
}

template <class T> Matrix<T>* combination(T alpha, const Matrix<T>& a, T beta, const Matrix<T>& b) {
    return new Matrix<T>(alpha * a + beta * b);
}

}  // namespace

#define EXPORTED(T, S)                                                                                                 \
    Matrix<T>* matrix_##S(int rows, int cols, int nnz, const int* indptr, const int* indices, const T* data) {         \
        return new Matrix<T>(Eigen::Map<const Matrix<T>>(rows, cols, nnz, indptr, indices, data));                     \
    }                                                                                                                  \
    void drop_##S(Matrix<T>* a) { delete a; }                                                                          \
    void look_##S(const Matrix<T>* a, long* sizes, const int** indptr, const int** indices, const T** data) {          \
        sizes[0] = a->rows(), sizes[1] = a->cols(), sizes[2] = a->nonZeros();                                          \
        *indptr = a->outerIndexPtr(), *indices = a->innerIndexPtr(), *data = a->valuePtr();                            \
    }                                                                                                                  \
    Matrix<T>* product_##S(const Matrix<T>* a, const Matrix<T>* b) { return new Matrix<T>(*a * *b); }                  \
    Matrix<T>* transpose_##S(const Matrix<T>* a) { return new Matrix<T>(a->transpose()); }                             \
    Matrix<T>* combination_##S(T alpha, const Matrix<T>* a, T beta, const Matrix<T>* b) {                              \
        return combination<T>(alpha, *a, beta, *b);                                                                    \
    }                                                                                                                  \
    void cotan_##S(int n, int m, const T* V, const int* F, Matrix<T>** L, Matrix<T>** M) { cotan<T>(n, m, V, F, L, M); } \
    void dual_laplacian_##S(int n, int m, const T* V, const int* tets, Matrix<T>** L, Matrix<T>** M) {                 \
        dual_laplacian<T>(n, m, V, tets, L, M);                                                                        \
    }                                                                                                                  \
    void arap_##S(int n, const T* P, const T* V, const int* offsets, const int* neighbour, const T* w, T* R, T* out) { \
        arap<T>(n, P, V, offsets, neighbour, w, R, out);                                                               \
    }                                                                                                                  \
    void cloth_system_##S(int n, int m, const T* x, const T* v, const int* F, const T* B, const T* area,               \
                          const T* constants, const T* gravity, const Matrix<T>* bend, Matrix<T>** A, T* b) {          \
        cloth_system<T>(n, m, x, v, F, B, area, constants, gravity, bend, A, b);                                       \
    }

extern "C" {
EXPORTED(double, d)
EXPORTED(float, s)
}
