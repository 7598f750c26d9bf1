// title: FFTs of many rows: radix 2 in shared memory, radix 4 by Stockham's passes, and the inverse
// features: shared_memory, vector_types, templates, fast_math_functions
// args: 16

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define N 256

#define CUDA_SAFE_CALL(x)                                                           \
  {                                                                                 \
    cudaError_t e = (x);                                                            \
    if (e != cudaSuccess) {                                                         \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));             \
      exit(-1);                                                                     \
    }                                                                               \
  }

__device__ inline float2 operator*(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
__device__ inline float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ inline float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }

template <int DIR>
__device__ inline float2 twiddle(float fraction) {
  float s, c;
  sincospif(DIR * 2.0f * fraction, &s, &c);
  return make_float2(c, s);
}

// One block a row: bit reversal, then log2 N butterflies.
template <int DIR>
__global__ void fftRadix2(float2* data) {
  __shared__ float2 s[N];
  float2* row = data + blockIdx.x * N;
  const int t = threadIdx.x;
  for (int i = t; i < N; i += N / 2) s[__brev(i) >> 24] = row[i];
  for (int half = 1; half < N; half *= 2) {
    __syncthreads();
    int k = t & (half - 1), a = ((t - k) << 1) + k, b = a + half;
    float2 u = s[a], v = s[b] * twiddle<DIR>(k / (2.0f * half));
    s[a] = u + v;
    s[b] = u - v;
  }
  __syncthreads();
  for (int i = t; i < N; i += N / 2) row[i] = s[i];
}

// One pass of radix 4 from one buffer to the other; after log4 N passes the order is natural.
template <int DIR>
__global__ void fftRadix4Pass(const float2* in, float2* out, int stride) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, row = t / (N / 4), j = t % (N / 4);
  in += row * N;
  out += row * N;
  int k = j & (stride - 1);
  float2 w = twiddle<DIR>(k / (4.0f * stride)), w2 = w * w, w3 = w2 * w;
  float2 a = in[j], b = in[j + N / 4] * w, c = in[j + N / 2] * w2, d = in[j + 3 * N / 4] * w3;
  float2 ac = a + c, amc = a - c, bd = b + d, bmd = b - d;
  float2 r = make_float2(-DIR * bmd.y, DIR * bmd.x);  // i or -i times it
  int o = ((j - k) << 2) + k;
  out[o] = ac + bd;
  out[o + stride] = amc + r;
  out[o + 2 * stride] = ac - bd;
  out[o + 3 * stride] = amc - r;
}

__global__ void normalise(float2* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i].x /= N, x[i].y /= N;
}

int main(int argc, char** argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 16, n = rows * N;
  std::vector<float2> x(n), a(n), b(n), back(n);
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < N; i++)
      x[r * N + i] = make_float2(cosf(2 * (float)M_PI * (r + 1) * i / N) + (i % 7) * 0.125f, (float)((i * r) % 5) * 0.25f - 0.5f);
  float2 *d1, *d2, *d3;
  const size_t bytes = n * sizeof(float2);
  CUDA_SAFE_CALL(cudaMalloc(&d1, bytes));
  CUDA_SAFE_CALL(cudaMalloc(&d2, bytes));
  CUDA_SAFE_CALL(cudaMalloc(&d3, bytes));
  CUDA_SAFE_CALL(cudaMemcpy(d1, x.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_SAFE_CALL(cudaMemcpy(d2, d1, bytes, cudaMemcpyDeviceToDevice));
  fftRadix2<-1><<<rows, N / 2>>>(d1);
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy(a.data(), d1, bytes, cudaMemcpyDeviceToHost));
  float2 *in = d2, *out = d3;
  for (int stride = 1; stride < N; stride *= 4) {
    fftRadix4Pass<-1><<<n / 4 / 64, 64>>>(in, out, stride);
    std::swap(in, out);
  }
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy(b.data(), in, bytes, cudaMemcpyDeviceToHost));
  fftRadix2<1><<<rows, N / 2>>>(in);
  normalise<<<(n + 127) / 128, 128>>>(in, n);
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy(back.data(), in, bytes, cudaMemcpyDeviceToHost));
  CUDA_SAFE_CALL(cudaFree(d1));
  CUDA_SAFE_CALL(cudaFree(d2));
  CUDA_SAFE_CALL(cudaFree(d3));
  double worst = 0, peak = 0;
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < N; k += 5) {
      std::complex<double> sum = 0;
      for (int i = 0; i < N; i++)
        sum += std::complex<double>(x[r * N + i].x, x[r * N + i].y) * std::polar(1.0, -2 * M_PI * ((i * k) % N) / N);
      float2 p = a[r * N + k], q = b[r * N + k];
      worst = fmax(worst, std::abs(sum - std::complex<double>(p.x, p.y)));
      worst = fmax(worst, std::abs(sum - std::complex<double>(q.x, q.y)));
      peak = fmax(peak, std::abs(sum));
    }
  double away = 0;
  for (int i = 0; i < n; i++) away = fmax(away, hypot(x[i].x - back[i].x, x[i].y - back[i].y));
  printf("%d rows of %d: largest coefficient %.1f, back within 1e-4: %s\n", rows, N, peak, away < 1e-4 ? "yes" : "no");
  bool ok = worst < 2e-3 && away < 1e-4;
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
