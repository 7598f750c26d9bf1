// title: arithmetic in half and bfloat16: scalar products of half2, axpy, comparisons, conversions, atomics
// features: half_arithmetic, bfloat16_arithmetic, reduction, atomics, templates

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#define CHECK_OR_EXIT(x)                                    \
  if (cudaError_t s = (x)) {                                \
    fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(s)); \
    exit(1);                                                \
  }

const int NUM_OF_BLOCKS = 4, NUM_OF_THREADS = 64;

__forceinline__ __device__ void reduceInShared_intrinsics(half2* const v) {
  if (threadIdx.x < 32) {
    for (int s = 32; s >= 1; s /= 2) {
      half2 sum = __hadd2(v[threadIdx.x], v[threadIdx.x + s]);
      __syncwarp();
      if (threadIdx.x < s) v[threadIdx.x] = sum;
      __syncwarp();
    }
  }
}

__global__ void scalarProductKernel_intrinsics(half2 const* const a, half2 const* const b, float* const results,
                                               size_t const size) {
  const int stride = gridDim.x * blockDim.x;
  __shared__ half2 shArray[NUM_OF_THREADS];
  half2 value = __float2half2_rn(0.f);
  for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < size; i += stride) value = __hfma2(a[i], b[i], value);
  shArray[threadIdx.x] = value;
  __syncthreads();
  reduceInShared_intrinsics(shArray);
  if (threadIdx.x == 0) {
    half2 result = shArray[0];
    float f_result = __low2float(result) + __high2float(result);
    results[blockIdx.x] = f_result;
  }
}

// The operators are the intrinsics.
template <typename T2>
__global__ void axpy_pairs(int pairs, T2 alpha, const T2* x, T2* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x)
    y[i] = alpha * x[i] + y[i];
}

__global__ void half_tour(const half* x, int n, float* out, int* counts) {
  int i = threadIdx.x;
  half v = x[i], zero = __int2half_rn(0);
  half r = __hgt(v, zero) ? hsqrt(v) : __hneg(v);
  out[i] = __half2float(r);
  if (__hisnan(hsqrt(v))) atomicAdd(&counts[0], 1);
  if (v < __float2half(1.0f) && __hge(v, __float2half(-1.0f))) atomicAdd(&counts[1], 1);
  half2 pair = __halves2half2(v, __habs(v));
  half2 swapped = __lowhigh2highlow(pair);
  if (__hbeq2(pair, swapped)) atomicAdd(&counts[2], 1);
  counts[3 + i] = __half2int_rn(__hmul(v, __float2half(2.0f)));
  out[n + i] = __half2float(hfloor(v)) + 100.0f * __half2float(__hmax(v, zero));
  unsigned short bits = __half_as_ushort(v);
  out[2 * n + i] = __half2float(__ushort_as_half(bits ^ 0x8000));
}

__global__ void bfloat_tour(const float* x, int n, __nv_bfloat16* rounded, float* sum, __nv_bfloat162* pairs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  rounded[i] = __float2bfloat16(x[i]);
  __nv_bfloat16 twice = __hadd(rounded[i], rounded[i]);
  pairs[i] = __halves2bfloat162(twice, hrint(rounded[i]));
  atomicAdd(sum, __bfloat162float(__hmul(rounded[i], __float2bfloat16(0.0f)) + twice));
}

// Rounds to `bits` of the significand, to nearest and even.
static double round_to(double x, int bits) {
  if (x == 0) return 0;
  int e;
  std::frexp(x, &e);
  return std::ldexp(std::nearbyint(std::ldexp(x, bits - e)), e - bits);
}

template <typename T>
T* on_device(const std::vector<T>& h) {
  T* d;
  CHECK_OR_EXIT(cudaMalloc((void**)&d, h.size() * sizeof(T)));
  CHECK_OR_EXIT(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
  return d;
}
template <typename T>
std::vector<T> fetch(T* d, size_t n) {
  std::vector<T> h(n);
  CHECK_OR_EXIT(cudaMemcpy(h.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
  return h;
}

int main() {
  static_assert(std::is_same_v<half, __half> && sizeof(half2) == 4 && sizeof(__nv_bfloat162) == 4, "types");
  int bad = 0;
  const int pairs = 1000;
  std::vector<half2> a(pairs), b(pairs);
  double expected = 0;
  for (int i = 0; i < pairs; i++) {  // small whole numbers: partial sums stay below 2048 and are exact
    float ax = i % 3, ay = (i / 3) % 2, bx = (i + 1) % 2, by = (i % 4) - 1;
    a[i] = __floats2half2_rn(ax, ay);
    b[i] = __floats2half2_rn(bx, by);
    expected += ax * bx + ay * by;
  }
  half2 *d_a = on_device(a), *d_b = on_device(b);
  float* d_results = on_device(std::vector<float>(NUM_OF_BLOCKS, 0.f));
  scalarProductKernel_intrinsics<<<NUM_OF_BLOCKS, NUM_OF_THREADS>>>(d_a, d_b, d_results, pairs);
  float result = 0;
  for (float f : fetch(d_results, NUM_OF_BLOCKS)) result += f;
  printf("scalar product: %g\n", result);
  bad += result != expected;

  axpy_pairs<<<3, 128>>>(pairs, __float2half2_rn(3.0f), d_a, d_b);
  auto y = fetch(d_b, pairs);
  for (int i = 0; i < pairs; i++)
    bad +=
        __half2float(y[i].x) != 3.0f * (i % 3) + (i + 1) % 2 || __high2float(y[i]) != 3.0f * ((i / 3) % 2) + i % 4 - 1;
  printf("axpy: %g %g\n", __low2float(y[5]), __high2float(y[5]));

  const int n = 64;
  std::vector<half> x(n);
  for (int i = 0; i < n; i++) x[i] = __float2half((i - 20) * 0.25f);
  half* d_x = on_device(x);
  float* d_out = on_device(std::vector<float>(3 * n, 0.f));
  int* d_counts = on_device(std::vector<int>(3 + n, 0));
  half_tour<<<1, n>>>(d_x, n, d_out, d_counts);
  auto out = fetch(d_out, 3 * n);
  auto counts = fetch(d_counts, 3 + n);
  int negative = 0, small = 0, equal = 0;
  for (int i = 0; i < n; i++) {
    double v = (i - 20) * 0.25;
    negative += v < 0;
    small += v < 1 && v >= -1;
    equal += v >= 0;
    bad += std::fabs(out[i] - (v > 0 ? std::sqrt(v) : -v)) > 2e-3;
    bad += out[n + i] != std::floor(v) + 100 * std::fmax(v, 0.0) || out[2 * n + i] != -v;
    bad += counts[3 + i] != std::nearbyint(2 * v);
  }
  bad += counts[0] != negative || counts[1] != small || counts[2] != equal;
  printf("half: %d negative, %d small, %d equal pairs\n", counts[0], counts[1], counts[2]);

  std::vector<float> f(200);
  double sum = 0;
  for (int i = 0; i < 200; i++) f[i] = 1.0f + i * 0.01171875f, sum += 2 * round_to(f[i], 8);
  float *d_f = on_device(f), *d_sum = on_device(std::vector<float>(1, 0.f));
  auto* d_rounded = on_device(std::vector<__nv_bfloat16>(200, __float2bfloat16(0.f)));
  auto* d_pairs = on_device(std::vector<__nv_bfloat162>(200));
  bfloat_tour<<<2, 128>>>(d_f, 200, d_rounded, d_sum, d_pairs);
  auto rounded = fetch(d_rounded, 200);
  auto both = fetch(d_pairs, 200);
  for (int i = 0; i < 200; i++) {
    double r = round_to(f[i], 8);
    bad += __bfloat162float(rounded[i]) != r || __low2float(both[i]) != 2 * r;
    bad += __high2float(both[i]) != std::nearbyint(r);
  }
  float bsum = fetch(d_sum, 1)[0];
  bad += std::fabs(bsum - sum) > 1e-2;
  printf("bfloat16: third value %.6f, sum %.2f\n", __bfloat162float(rounded[2]), bsum);

  for (void* p : {(void*)d_a, (void*)d_b, (void*)d_results, (void*)d_x, (void*)d_out, (void*)d_counts, (void*)d_f,
                  (void*)d_sum, (void*)d_rounded, (void*)d_pairs})
    CHECK_OR_EXIT(cudaFree(p));
  puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
