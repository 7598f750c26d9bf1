// title: Reaction rates of a small mechanism at many grid points: Arrhenius factors, equilibria, production rates
// features: constant_memory, macros, templates, launch_bounds
// args: 2000

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define SPECIES 5   // H2 O2 H2O H O
#define REACTIONS 4

#define CUDA_DO(x)                                                                     \
  if (cudaError_t e = (x); e != cudaSuccess) {                                         \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e));            \
    std::exit(1);                                                                      \
  }

template <class R>
struct Mechanism {
  R a[REACTIONS], b[REACTIONS], e[REACTIONS];
  R enthalpy[SPECIES], entropy[SPECIES];
  int nu[REACTIONS][SPECIES];  // products minus educts
  int educts[REACTIONS][SPECIES];
};

__constant__ Mechanism<float> c_mechanism;

// values of species s of point i, one species after the other in memory
#define Y(s) y[(s) * n + i]
#define RATE(s) wdot[(s) * n + i]

template <class R>
__host__ __device__ inline R power(R x, int k) { return k == 0 ? R(1) : k == 1 ? x : x * x; }

template <class R>
__host__ __device__ inline void production(const Mechanism<R>& m, R temperature, const R* conc, R* w) {
  const R inv = R(1) / temperature, logT = log(temperature);
  for (int s = 0; s < SPECIES; s++) w[s] = 0;
  for (int r = 0; r < REACTIONS; r++) {
    R forward = m.a[r] * exp(m.b[r] * logT - m.e[r] * inv), gibbs = 0;
    for (int s = 0; s < SPECIES; s++) gibbs += m.nu[r][s] * (m.enthalpy[s] * inv - m.entropy[s]);
    R backward = forward * exp(gibbs < R(60) ? gibbs : R(60)), left = 1, right = 1;
    for (int s = 0; s < SPECIES; s++) {
      left *= power(conc[s], m.educts[r][s]);
      right *= power(conc[s], m.educts[r][s] + m.nu[r][s]);
    }
    R q = forward * left - backward * right;
    for (int s = 0; s < SPECIES; s++) w[s] += m.nu[r][s] * q;
  }
}

__launch_bounds__(64) __global__ void rates(const float* __restrict__ temperature, const float* __restrict__ y, float* __restrict__ wdot, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float conc[SPECIES], w[SPECIES];
  for (int s = 0; s < SPECIES; s++) conc[s] = Y(s);
  production(c_mechanism, temperature[i], conc, w);
  for (int s = 0; s < SPECIES; s++) RATE(s) = w[s];
}

template <class R>
static Mechanism<R> makeMechanism() {
  //                                      H2 O2 H2O H  O
  const int educts[REACTIONS][SPECIES] = {{0, 1, 0, 1, 0}, {1, 0, 0, 0, 1}, {1, 1, 0, 0, 0}, {0, 0, 1, 0, 1}};
  const int nu[REACTIONS][SPECIES] = {{0, -1, 1, -1, 1}, {-1, 0, 1, 0, -1}, {-1, -1, 1, 0, 1}, {0, 1, -1, 2, -1}};
  Mechanism<R> m = {{R(2.5), R(0.8), R(1.2), R(0.5)}, {R(0.25), R(0.5), R(0), R(0.125)}, {R(800), R(350), R(1200), R(1500)},
                    {R(0), R(0), R(-2900), R(2600), R(3000)}, {R(1.5), R(2.4), R(2.2), R(1.3), R(1.9)}, {}, {}};
  for (int r = 0; r < REACTIONS; r++)
    for (int s = 0; s < SPECIES; s++) m.nu[r][s] = nu[r][s], m.educts[r][s] = educts[r][s];
  return m;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::vector<float> temperature(n), y(SPECIES * n), wdot(SPECIES * n);
  for (int i = 0; i < n; i++) {
    temperature[i] = 800.0f + 600.0f * i / n;
    for (int s = 0; s < SPECIES; s++) Y(s) = 0.1f + 0.05f * ((i * (s + 2)) % 11);
  }
  Mechanism<float> mechanism = makeMechanism<float>();
  CUDA_DO(cudaMemcpyToSymbol(c_mechanism, &mechanism, sizeof mechanism));
  float *d_t, *d_y, *d_w;
  CUDA_DO(cudaMalloc(&d_t, n * sizeof(float)));
  CUDA_DO(cudaMalloc(&d_y, y.size() * sizeof(float)));
  CUDA_DO(cudaMalloc(&d_w, wdot.size() * sizeof(float)));
  CUDA_DO(cudaMemcpy(d_t, temperature.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_DO(cudaMemcpy(d_y, y.data(), y.size() * sizeof(float), cudaMemcpyHostToDevice));
  rates<<<(n + 63) / 64, 64>>>(d_t, d_y, d_w, n);
  CUDA_DO(cudaGetLastError());
  CUDA_DO(cudaMemcpy(wdot.data(), d_w, wdot.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_DO(cudaFree(d_t));
  CUDA_DO(cudaFree(d_y));
  CUDA_DO(cudaFree(d_w));
  const Mechanism<double> exact = makeMechanism<double>();
  double worst = 0, sums[SPECIES] = {};
  for (int i = 0; i < n; i++) {
    double conc[SPECIES], w[SPECIES] = {0, 0, 0, 0, 0}, t = temperature[i];
    for (int s = 0; s < SPECIES; s++) conc[s] = Y(s);
    for (int r = 0; r < REACTIONS; r++) {  // from the definition
      double k = exact.a[r] * std::pow(t, exact.b[r]) * std::exp(-exact.e[r] / t), g = 0, left = 1, right = 1;
      for (int s = 0; s < SPECIES; s++) {
        g += exact.nu[r][s] * (exact.enthalpy[s] / t - exact.entropy[s]);
        left *= std::pow(conc[s], exact.educts[r][s]);
        right *= std::pow(conc[s], exact.educts[r][s] + exact.nu[r][s]);
      }
      for (int s = 0; s < SPECIES; s++) w[s] += exact.nu[r][s] * k * (left - std::exp(g) * right);
    }
    for (int s = 0; s < SPECIES; s++) {
      worst = std::fmax(worst, std::fabs(w[s] - RATE(s)) / (1 + std::fabs(w[s])));
      sums[s] += RATE(s) / n;
    }
  }
  std::printf("mean rates: %.3f %.3f %.3f %.3f %.3f\n", sums[0], sums[1], sums[2], sums[3], sums[4]);
  const bool ok = worst < 1e-3;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
