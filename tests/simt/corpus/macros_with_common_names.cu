// title: a course assignment full of short macros: N, WARP, min, BLOCK, grid, launch, and branches not taken
// features: preprocessor, macros, shared_memory, architecture_macros, untaken_branches, colliding_macros

#include <stdio.h>
#include <stdlib.h>

#define N 2000
#define WARP 32
#define BLOCK 128
#define T float
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define PI 3
#define tid threadIdx.x
#define bid blockIdx.x
#define SYNC __syncthreads()
#define KERNEL __global__ void
#define DEVICE __device__ __forceinline__
#define grid ((N + BLOCK - 1) / BLOCK)
#define block BLOCK
#ifndef min
#define min(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
#define swap(x, y) { T t_ = x; x = y; y = t_; }
#define launch(k, ...) k<<<grid, block>>>(__VA_ARGS__)
#define LAUNCH_SHARED(k, bytes, ...) \
  k<<<grid, block, bytes>>>(__VA_ARGS__)
#define check(x) if ((x) != cudaSuccess) { printf("error in line %d\n", __LINE__); exit(1); }
#define FOR(v, n) for (int v = 0; v < (n); v++)
#define index2(y, x, w) (y) * (w) + (x)
#define FLOAT4(p) (reinterpret_cast<float4 *>(&(p))[0])
#define DECLARE_MAP(name, expression)                      \
  KERNEL name##_kernel(const T *in, T *out, int n) {       \
    int i = I;                                             \
    if (i < n) {                                           \
      T x = in[i];                                         \
      out[i] = expression;                                 \
    }                                                      \
  }

DECLARE_MAP(square, x *x)
DECLARE_MAP(clip, min(max(x, -PI), PI))
DECLARE_MAP(hinge, x > 0 ? x : 0.25f * x)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 500
#error "this program needs compute capability 5.0"
#elif 0
KERNEL never(undeclared_type *p) { p->launch<<<1>>>(); }
#endif

#if __CUDA_ARCH__ < 200 && defined(OLD_HARDWARE)
#define LIMIT __mul24(gridDim.x, blockDim.x)
texture<float, 1> old_texture;
#else
#define LIMIT (gridDim.x * blockDim.x)
#endif

#ifdef USE_DOUBLE_TEXTURES
texture<int2, 1, cudaReadModeElementType> tex;
#endif

DEVICE T twice(T x) {
#if __CUDA_ARCH__ >= 700
  return x + x;
#elif defined(__CUDA_ARCH__)
  return __fadd_rn(x, x);
#else
  return 2 * x;  // never called on the host
#endif
}

KERNEL block_max(const T *in, T *out, int n) {
  extern __shared__ T buffer[];
  buffer[tid] = I < n ? in[I] : in[0];
  SYNC;
  for (int s = BLOCK / 2; s > 0; s >>= 1) {
    if (tid < s) buffer[tid] = max(buffer[tid], buffer[tid + s]);
    SYNC;
  }
  if (tid == 0) out[bid] = twice(buffer[0]);
}

KERNEL reverse_quads(T *data, int quads) {
  for (int q = I; q < quads; q += LIMIT) {
    float4 v = FLOAT4(data[4 * q]);
    swap(v.x, v.w);
    swap(v.y, v.z);
    FLOAT4(data[4 * q]) = v;
  }
}

#undef max
#undef min

KERNEL warp_sums(const T *in, T *out, int n) {
  T v = I < n ? in[I] : 0;
#pragma unroll
  for (int o = WARP >> 1; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  if (tid % WARP == 0) out[I / WARP] = v + min(0, max(0, (int)tid));  // now CUDA's own functions
}

int main(void) {
  static T h[N], r[N], m[N];
  T *in, *out;
  int wrong = 0;
  FOR(i, N) h[i] = (T)((i * 37) % 41 - 20) / 2;
  check(cudaMalloc((void **)&in, sizeof(h)));
  check(cudaMalloc((void **)&out, sizeof(h)));
  check(cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice));

#define TEST(name, what)                                             \
  launch(name##_kernel, in, out, N);                                 \
  check(cudaGetLastError());                                         \
  check(cudaMemcpy(r, out, sizeof(r), cudaMemcpyDeviceToHost));      \
  {                                                                  \
    double total = 0;                                                \
    FOR(i, N) {                                                      \
      double x = h[i];                                               \
      if (r[i] != (what)) wrong++;                                   \
      total += r[i];                                                 \
    }                                                                \
    printf("%-7s %.2f, wrong so far: %d\n", #name, total, wrong);    \
  }
  TEST(square, x * x)
  TEST(clip, x < -3 ? -3 : x > 3 ? 3 : x)
  TEST(hinge, x > 0 ? x : x / 4)

  LAUNCH_SHARED(block_max, BLOCK * sizeof(T), in, out, N);
  check(cudaMemcpy(m, out, grid * sizeof(T), cudaMemcpyDeviceToHost));
  FOR(b, grid) {
    T most = h[0];
    if ((b + 1) * BLOCK <= N) most = h[b * BLOCK];
    for (int i = b * BLOCK; i < N && i < (b + 1) * BLOCK; i++)
      if (h[i] > most) most = h[i];
    wrong += m[b] != 2 * most;
  }
  printf("maximum %.1f, wrong so far: %d\n", m[0], wrong);

  launch(warp_sums, in, out, N);
  check(cudaMemcpy(m, out, (N + WARP - 1) / WARP * sizeof(T), cudaMemcpyDeviceToHost));
  FOR(w, (N + WARP - 1) / WARP) {
    T sum = 0;
    for (int i = w * WARP; i < N && i < (w + 1) * WARP; i++) sum += h[i];
    wrong += m[w] != sum;
  }
  printf("first warp %.1f, wrong so far: %d\n", m[0], wrong);

  reverse_quads<<<2, 64>>>(in, N / 4);
  check(cudaMemcpy(r, in, sizeof(r), cudaMemcpyDeviceToHost));
  FOR(q, N / 4) FOR(k, 4) wrong += r[index2(q, k, 4)] != h[index2(q, 3 - k, 4)];
  printf("first quad %.1f %.1f %.1f %.1f\n", r[0], r[1], r[2], r[3]);

  check(cudaFree(in));
  check(cudaFree(out));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
