// title: Sobol numbers of several dimensions, by Gray code, and an integral with them
// features: shared_memory, integer_intrinsics, quasirandom_numbers
// args: 2048 6

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
  do {                                                                            \
    cudaError_t e = (x);                                                          \
    if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));        \
  } while (0)

const int BITS = 32, MAX_DIMENSIONS = 6;

struct Primitive {
  unsigned degree, a, m[5];
};

// primitive polynomials over GF(2), with odd starting values
static const Primitive table[MAX_DIMENSIONS] = {{0, 0, {}},        {1, 0, {1}},          {2, 1, {1, 3}},
                                                {3, 1, {1, 3, 1}}, {3, 2, {1, 1, 1}},    {4, 1, {1, 1, 3, 3}}};

static void directions(int dimensions, std::vector<unsigned>& v) {
  v.assign(dimensions * BITS, 0);
  for (int d = 0; d < dimensions; d++) {
    unsigned* w = &v[d * BITS];
    const Primitive& p = table[d];
    if (p.degree == 0) {
      for (int i = 0; i < BITS; i++) w[i] = 1u << (31 - i);
      continue;
    }
    for (unsigned i = 0; i < p.degree; i++) w[i] = p.m[i] << (31 - i);
    for (unsigned i = p.degree; i < BITS; i++) {
      w[i] = w[i - p.degree] ^ (w[i - p.degree] >> p.degree);
      for (unsigned k = 1; k < p.degree; k++)
        if (p.a >> (p.degree - 1 - k) & 1) w[i] ^= w[i - k];
    }
  }
}

// Each dimension has a row of blocks. A thread starts at its own index and advances by the number of threads, a power of two:
// then two bits of the Gray code change.
__global__ void sobol(int n, const unsigned* directionNumbers, float* out) {
  __shared__ unsigned v[BITS];
  directionNumbers += blockIdx.y * BITS;
  out += blockIdx.y * n;
  if (threadIdx.x < BITS) v[threadIdx.x] = directionNumbers[threadIdx.x];
  __syncthreads();
  int i0 = threadIdx.x + blockIdx.x * blockDim.x, stride = gridDim.x * blockDim.x;
  unsigned g = i0 ^ (i0 >> 1), x = 0;
  for (int k = 0; k < __ffs(stride) - 1; k++) x ^= (g >> k & 1) * v[k];
  if (i0 < n) out[i0] = x * 2.3283064365386963e-10f;
  unsigned vLog2 = v[__ffs(stride) - 2];
  for (int i = i0 + stride; i < n; i += stride) {
    x ^= vLog2 ^ v[__ffs(~((i - stride) | (stride - 1))) - 1];
    out[i] = x * 2.3283064365386963e-10f;
  }
}

__global__ void integrand(const float* points, int n, int dimensions, double* values) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double f = 1;
  for (int d = 0; d < dimensions; d++) f *= 1 + (points[d * n + i] - 0.5) / (d + 1);
  values[i] = f;
}

int main(int argc, char** argv) try {
  const int n = argc > 1 ? atoi(argv[1]) : 2048;
  int dimensions = argc > 2 ? atoi(argv[2]) : MAX_DIMENSIONS;
  if (dimensions > MAX_DIMENSIONS) dimensions = MAX_DIMENSIONS;
  std::vector<unsigned> v;
  directions(dimensions, v);
  unsigned* dv;
  float* dx;
  double* df;
  std::vector<float> x(n * dimensions);
  std::vector<double> f(n);
  CHECK(cudaMalloc(&dv, v.size() * sizeof(unsigned)));
  CHECK(cudaMalloc(&dx, x.size() * sizeof(float)));
  CHECK(cudaMalloc(&df, n * sizeof(double)));
  CHECK(cudaMemcpy(dv, v.data(), v.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  sobol<<<dim3(4, dimensions), 64>>>(n, dv, dx);
  CHECK(cudaGetLastError());
  integrand<<<(n + 127) / 128, 128>>>(dx, n, dimensions, df);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(x.data(), dx, x.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(f.data(), df, n * sizeof(double), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(dv));
  CHECK(cudaFree(dx));
  CHECK(cudaFree(df));
  int wrong = 0;
  for (int d = 0; d < dimensions; d++) {
    std::vector<int> cell(n, 0);
    for (int i = 0; i < n; i++) {
      unsigned sum = 0, gray = i ^ (i >> 1);
      for (int k = 0; k < BITS; k++)
        if (gray >> k & 1) sum ^= v[d * BITS + k];
      if ((float)(sum / 4294967296.0) != x[d * n + i]) wrong++;
      int c = (int)(x[d * n + i] * n);
      if (c < n) cell[c]++;
    }
    if ((n & (n - 1)) == 0)
      for (int c : cell) wrong += c != 1;  // a power of two of them: one point in each cell
  }
  double mean = 0;
  for (double value : f) mean += value / n;
  printf("%d points, point 5 of dimension 1: %.4f, integral %.3f\n", n, x[(dimensions > 1 ? n : 0) + 5], mean);
  bool ok = wrong == 0 && fabs(mean - 1) < 2e-3;
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
} catch (const std::exception& e) {
  fprintf(stderr, "%s\n", e.what());
  return 1;
}
