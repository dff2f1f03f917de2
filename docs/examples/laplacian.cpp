// The cotangent Laplacian of a mesh whose vertices move, as a matrix of Eigen's.
//
//   program = geoopt.compile(geoopt.operators.cotan_laplacian, V, F)
//   program.export("laplacian", name="laplacian")
//   V.tofile("positions.bin")  # float64, as the program was compiled
//
// and then, with the files of that folder and Eigen (Debian: apt install libeigen3-dev),
//   gcc -O3 -march=native -c laplacian.c
//   g++ -O3 -march=native -I/usr/include/eigen3 laplacian.cpp laplacian.o -lm -o laplacian
//   ./laplacian positions.bin
#include <Eigen/Sparse>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "laplacian.h"

using Rows = Eigen::SparseMatrix<double, Eigen::RowMajor, int>;

int main(int count, char **names) {
  if (count < 2) return std::fprintf(stderr, "usage: %s POSITIONS [laplacian.bin]\n", names[0]), 2;
  std::vector<char> bytes;
  if (count > 2) {
    std::ifstream file(names[2], std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  laplacian_tables tables;
  if (int why = laplacian_open(&tables, bytes.data(), bytes.size())) {
    return std::fprintf(stderr, "these are not its tables (%d)\n", why), 1;
  }
  std::vector<double> V(LAPLACIAN_INPUT0), workspace(LAPLACIAN_WORKSPACE);
  std::ifstream(names[1], std::ios::binary).read(reinterpret_cast<char *>(V.data()), V.size() * sizeof(double));

  // geoopt fills the values of matrices whose patterns it knows
  const int n = LAPLACIAN_INPUT0 / 3;
  std::vector<double> L(LAPLACIAN_OUTPUT0), M(LAPLACIAN_OUTPUT1);
  const double *inputs[] = {V.data()};
  double *outputs[] = {L.data(), M.data()};
  laplacian(&tables, inputs, outputs, workspace.data());

  Eigen::Map<const Rows> laplace(n, n, L.size(), tables.output0_indptr, tables.output0_indices, L.data());
  Eigen::VectorXd ones = Eigen::VectorXd::Ones(n);
  std::printf("%d vertices, %d values, |L 1| = %.1e, area = %.12g\n", n, int(laplace.nonZeros()),
              (laplace * ones).norm(), Eigen::Map<Eigen::VectorXd>(M.data(), M.size()).sum());
}
