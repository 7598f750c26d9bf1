// title: Euler equations on an unstructured ring of cells: fluxes, local time steps, three-stage Runge-Kutta
// features: structure_of_arrays, constant_memory, device_functions, double_precision
// args: 1024 10

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#define GAMMA 1.4f
#define NVAR 4  // density, two momenta, energy
#define RK 3
#define BLOCK 128

inline void checkError(cudaError_t e, int line) {
  if (e != cudaSuccess) {
    std::cerr << "line " << line << ": " << cudaGetErrorString(e) << std::endl;
    std::exit(-1);
  }
}
#define OK(x) checkError((x), __LINE__)

template <typename T>
T* alloc(int n) {
  T* t;
  OK(cudaMalloc((void**)&t, sizeof(T) * n));
  return t;
}

template <typename R>
struct State {
  R rho, mx, my, e;
};

template <typename R>
__host__ __device__ inline R pressure(const State<R>& s) { return (R(GAMMA) - 1) * (s.e - R(0.5) * (s.mx * s.mx + s.my * s.my) / s.rho); }

template <typename R>
__host__ __device__ inline R waveSpeed(const State<R>& s) {
  return sqrt((s.mx * s.mx + s.my * s.my) / (s.rho * s.rho)) + sqrt(R(GAMMA) * pressure(s) / s.rho);
}

// The flux through a face with normal (nx, ny), and Rusanov's dissipation.
template <typename R>
__host__ __device__ inline State<R> faceFlux(const State<R>& a, const State<R>& b, R nx, R ny) {
  R pa = pressure(a), pb = pressure(b), ua = (a.mx * nx + a.my * ny) / a.rho, ub = (b.mx * nx + b.my * ny) / b.rho;
  R area = sqrt(nx * nx + ny * ny), s = fmax(waveSpeed(a), waveSpeed(b)) * area;
  State<R> f;
  f.rho = R(0.5) * (a.rho * ua + b.rho * ub - s * (b.rho - a.rho));
  f.mx = R(0.5) * (a.mx * ua + pa * nx + b.mx * ub + pb * nx - s * (b.mx - a.mx));
  f.my = R(0.5) * (a.my * ua + pa * ny + b.my * ub + pb * ny - s * (b.my - a.my));
  f.e = R(0.5) * ((a.e + pa) * ua + (b.e + pb) * ub - s * (b.e - a.e));
  return f;
}

__constant__ float farField[NVAR];

__device__ State<float> load(const float* v, int i, int n) {
  return i < 0 ? State<float>{farField[0], farField[1], farField[2], farField[3]} : State<float>{v[i], v[i + n], v[i + 2 * n], v[i + 3 * n]};
}

__global__ void timeStep(const float* v, float* factor, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) factor[i] = 0.2f / waveSpeed(load(v, i, n));
}

__global__ void computeFlux(const int* neighbours, const float2* normals, const float* v, float* flux, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  State<float> me = load(v, i, n), sum = {0, 0, 0, 0};
  for (int k = 0; k < 4; k++) {
    float2 nrm = normals[k * n + i];
    State<float> f = faceFlux(me, load(v, neighbours[k * n + i], n), nrm.x, nrm.y);
    sum.rho -= f.rho, sum.mx -= f.mx, sum.my -= f.my, sum.e -= f.e;
  }
  flux[i] = sum.rho, flux[i + n] = sum.mx, flux[i + 2 * n] = sum.my, flux[i + 3 * n] = sum.e;
}

__global__ void advance(int j, const float* old, float* v, const float* factor, const float* flux, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  float f = factor[i] / (float)(RK + 1 - j);
  for (int k = 0; k < NVAR; k++) v[i + k * n] = old[i + k * n] + f * flux[i + k * n];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1024, iterations = argc > 2 ? std::atoi(argv[2]) : 10, w = 32, h = n / w;
  std::vector<int> nb(4 * n);
  std::vector<float2> normals(4 * n);
  const float p0 = 1.0f, angle = 0.1f, mach = 0.5f, c = sqrtf(GAMMA * p0);
  float far[NVAR] = {1.0f, mach * c * cosf(angle), mach * c * sinf(angle), 0};
  far[3] = p0 / (GAMMA - 1) + 0.5f * (far[1] * far[1] + far[2] * far[2]);
  std::vector<float> start(NVAR * n), got(NVAR * n);
  for (int i = 0; i < n; i++) {
    int x = i % w, y = i / w;
    nb[i] = x ? i - 1 : -1, nb[n + i] = x < w - 1 ? i + 1 : -1, nb[2 * n + i] = y ? i - w : -1, nb[3 * n + i] = y < h - 1 ? i + w : -1;
    float2 dirs[4] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    for (int k = 0; k < 4; k++) normals[k * n + i] = dirs[k];
    float bump = 1.0f + 0.5f * expf(-0.05f * ((x - 12) * (x - 12) + (y - 15) * (y - 15)));
    for (int k = 0; k < NVAR; k++) start[k * n + i] = far[k] * bump;
  }
  int* d_nb = alloc<int>(4 * n);
  float2* d_normals = alloc<float2>(4 * n);
  float *v = alloc<float>(NVAR * n), *old = alloc<float>(NVAR * n), *flux = alloc<float>(NVAR * n), *factor = alloc<float>(n);
  OK(cudaMemcpyToSymbol(farField, far, sizeof far));
  OK(cudaMemcpy(d_nb, nb.data(), nb.size() * sizeof(int), cudaMemcpyHostToDevice));
  OK(cudaMemcpy(d_normals, normals.data(), normals.size() * sizeof(float2), cudaMemcpyHostToDevice));
  OK(cudaMemcpy(v, start.data(), start.size() * sizeof(float), cudaMemcpyHostToDevice));
  const int blocks = (n + BLOCK - 1) / BLOCK;
  for (int it = 0; it < iterations; it++) {
    OK(cudaMemcpy(old, v, NVAR * n * sizeof(float), cudaMemcpyDeviceToDevice));
    timeStep<<<blocks, BLOCK>>>(v, factor, n);
    for (int j = 1; j <= RK; j++) {
      computeFlux<<<blocks, BLOCK>>>(d_nb, d_normals, v, flux, n);
      advance<<<blocks, BLOCK>>>(j, old, v, factor, flux, n);
    }
    OK(cudaGetLastError());
  }
  OK(cudaMemcpy(got.data(), v, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  OK(cudaFree(d_nb));
  OK(cudaFree(d_normals));
  OK(cudaFree(v));
  OK(cudaFree(old));
  OK(cudaFree(flux));
  OK(cudaFree(factor));

  std::vector<State<double>> u(n), u0(n), r(n);
  std::vector<double> dt(n);
  State<double> outer{far[0], far[1], far[2], far[3]};
  for (int i = 0; i < n; i++) u[i] = {start[i], start[n + i], start[2 * n + i], start[3 * n + i]};
  for (int it = 0; it < iterations; it++) {
    u0 = u;
    for (int i = 0; i < n; i++) dt[i] = (double)0.2f / waveSpeed(u[i]);
    for (int j = 1; j <= RK; j++) {
      for (int i = 0; i < n; i++) {
        r[i] = {0, 0, 0, 0};
        for (int k = 0; k < 4; k++) {
          int o = nb[k * n + i];
          State<double> f = faceFlux(u[i], o < 0 ? outer : u[o], (double)normals[k * n + i].x, (double)normals[k * n + i].y);
          r[i].rho -= f.rho, r[i].mx -= f.mx, r[i].my -= f.my, r[i].e -= f.e;
        }
      }
      for (int i = 0; i < n; i++) {
        double f = dt[i] / (RK + 1 - j);
        u[i] = {u0[i].rho + f * r[i].rho, u0[i].mx + f * r[i].mx, u0[i].my + f * r[i].my, u0[i].e + f * r[i].e};
      }
    }
  }
  double worst = 0, mass = 0;
  for (int i = 0; i < n; i++) {
    worst = fmax(worst, fabs(u[i].rho - got[i]) + fabs(u[i].e - got[3 * n + i]));
    mass += got[i];
  }
  printf("%d cells, %d iterations: mean density %.3f\n", n, iterations, mass / n);
  puts(worst < 1e-3 ? "PASSED" : "FAILED");
  return worst < 1e-3 ? 0 : 1;
}
