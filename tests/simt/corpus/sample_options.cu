// title: Option prices: Black-Scholes in closed form and on a binomial tree, American puts too
// features: shared_memory, constant_memory, templates, restrict
// args: 40 255

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

struct OptionData { float S, X, T; };
struct TreeData { float S, X, vDt, puByDf, pdByDf; };

#define MAX_OPTIONS 256
#define TREE_THREADS 128
#define ELEMS 2
__constant__ TreeData d_trees[MAX_OPTIONS];

static void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) {
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
  }
}

// the polynomial of Abramowitz and Stegun, 26.2.17
template <class T>
__host__ __device__ T cndPolynomial(T d) {
  const T A1 = T(0.31938153), A2 = T(-0.356563782), A3 = T(1.781477937), A4 = T(-1.821255978), A5 = T(1.330274429);
  T k = T(1) / (T(1) + T(0.2316419) * (d < 0 ? -d : d));
  T c = T(0.39894228040143267794) * exp(T(-0.5) * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))));
  return d > 0 ? T(1) - c : c;
}

__launch_bounds__(128) __global__ void blackScholes(float2* __restrict__ result, const OptionData* __restrict__ o, float R,
                                                    float V, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  float sqrtT = __fdividef(1.0F, rsqrtf(o[i].T));
  float d1 = __fdividef(__logf(o[i].S / o[i].X) + (R + 0.5f * V * V) * o[i].T, V * sqrtT), d2 = d1 - V * sqrtT;
  float c1 = cndPolynomial(d1), c2 = cndPolynomial(d2), expRT = __expf(-R * o[i].T);
  float call = o[i].S * c1 - o[i].X * expRT * c2;
  result[i] = make_float2(call, o[i].X * expRT * (1.0f - c2) - o[i].S * (1.0f - c1));
}

// One block an option: each thread holds ELEMS values of the tree's last level and walks back; the neighbour's value comes
// through shared memory.
template <bool AmericanPut>
__global__ void binomial(float* prices, int steps) {
  __shared__ float border[TREE_THREADS + 1];
  const TreeData t = d_trees[blockIdx.x];
  const int tid = threadIdx.x;
  float value[ELEMS + 1];
  for (int i = 0; i < ELEMS; i++) {
    float spot = t.S * expf(t.vDt * (2.0f * (tid * ELEMS + i) - steps));
    value[i] = AmericanPut ? fmaxf(t.X - spot, 0) : fmaxf(spot - t.X, 0);
  }
  if (tid == 0) border[TREE_THREADS] = 0;
  for (int level = steps; level > 0; level--) {
    border[tid] = value[0];
    __syncthreads();
    value[ELEMS] = border[tid + 1];
    __syncthreads();
    if (level > tid * ELEMS)
      for (int i = 0; i < ELEMS; i++) {
        value[i] = t.puByDf * value[i + 1] + t.pdByDf * value[i];
        if (AmericanPut) value[i] = fmaxf(value[i], t.X - t.S * expf(t.vDt * (2.0f * (tid * ELEMS + i) - (level - 1))));
      }
  }
  if (tid == 0) prices[blockIdx.x] = value[0];
}

static double treeReference(const TreeData& t, int steps, bool put) {
  std::vector<double> v(steps + 1);
  auto spot = [&](int i, int level) { return t.S * exp((double)t.vDt * (2.0 * i - level)); };
  for (int i = 0; i <= steps; i++) v[i] = put ? fmax(t.X - spot(i, steps), 0.0) : fmax(spot(i, steps) - t.X, 0.0);
  for (int level = steps - 1; level >= 0; level--)
    for (int i = 0; i <= level; i++) {
      v[i] = (double)t.puByDf * v[i + 1] + (double)t.pdByDf * v[i];
      if (put) v[i] = fmax(v[i], t.X - spot(i, level));
    }
  return v[0];
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 40, steps = argc > 2 ? atoi(argv[2]) : 255;
  if (n > MAX_OPTIONS) n = MAX_OPTIONS;
  if (steps > TREE_THREADS * ELEMS - 1) steps = TREE_THREADS * ELEMS - 1;
  const float R = 0.02f, V = 0.30f;
  std::vector<OptionData> options(n);
  std::vector<TreeData> trees(n);
  for (int i = 0; i < n; i++) {
    OptionData o = {5.0f + i * 0.6f, 1.0f + (i * 37 % 50) * 0.7f, 0.25f + (i % 9) * 0.5f};
    options[i] = o;
    double dt = o.T / steps, vDt = V * sqrt(dt), rDt = R * dt, df = exp(-rDt), u = exp(vDt), d = exp(-vDt);
    double pu = (exp(rDt) - d) / (u - d);
    trees[i] = {o.S, o.X, (float)vDt, (float)(pu * df), (float)((1 - pu) * df)};
  }
  OptionData* d_options;
  float2* d_bs;
  float* d_prices;
  check(cudaMalloc(&d_options, n * sizeof(OptionData)), "malloc");
  check(cudaMalloc(&d_bs, n * sizeof(float2)), "malloc");
  check(cudaMalloc(&d_prices, n * sizeof(float)), "malloc");
  check(cudaMemcpy(d_options, options.data(), n * sizeof(OptionData), cudaMemcpyHostToDevice), "copy");
  check(cudaMemcpyToSymbol(d_trees, trees.data(), n * sizeof(TreeData)), "copy to constant memory");
  std::vector<float2> bs(n);
  std::vector<float> call(n), put(n);
  blackScholes<<<(n + 127) / 128, 128>>>(d_bs, d_options, R, V, n);
  check(cudaGetLastError(), "blackScholes");
  check(cudaMemcpy(bs.data(), d_bs, n * sizeof(float2), cudaMemcpyDeviceToHost), "copy");
  binomial<false><<<n, TREE_THREADS>>>(d_prices, steps);
  check(cudaGetLastError(), "binomial calls");
  check(cudaMemcpy(call.data(), d_prices, n * sizeof(float), cudaMemcpyDeviceToHost), "copy");
  binomial<true><<<n, TREE_THREADS>>>(d_prices, steps);
  check(cudaGetLastError(), "binomial puts");
  check(cudaMemcpy(put.data(), d_prices, n * sizeof(float), cudaMemcpyDeviceToHost), "copy");
  check(cudaFree(d_options), "free");
  check(cudaFree(d_bs), "free");
  check(cudaFree(d_prices), "free");

  bool ok = true;
  double sums[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; i++) {
    const OptionData& o = options[i];
    double s = V * sqrt((double)o.T), d1 = (log((double)o.S / o.X) + (R + 0.5 * V * V) * o.T) / s, df = exp(-(double)R * o.T);
    auto phi = [](double x) { return 0.5 * erfc(-x / sqrt(2.0)); };
    double c = o.S * phi(d1) - o.X * df * phi(d1 - s), p = c + o.X * df - o.S;
    ok = ok && fabs(c - bs[i].x) < 2e-4 && fabs(p - bs[i].y) < 2e-4;
    ok = ok && fabs(treeReference(trees[i], steps, false) - call[i]) < 2e-3 && fabs(c - call[i]) < 0.1;
    ok = ok && fabs(treeReference(trees[i], steps, true) - put[i]) < 2e-3 && put[i] > p - 0.1;
    sums[0] += bs[i].x, sums[1] += bs[i].y, sums[2] += call[i], sums[3] += put[i];
  }
  printf("%d options: calls %.1f, puts %.1f; %d steps: calls %.1f, American puts %.1f\n", n, sums[0], sums[1], steps, sums[2],
         sums[3]);
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
