"""Device code and whole kernels as courses and benchmarks write them: do they build, and agree with torch?"""

import re

import pytest
import torch
import torch.nn.functional as F

import simt

# ---- device code ----

DEVICE = (
    r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
__constant__ float w[9]; __constant__ float rows[3][3]; static __constant__ int whole; __constant__ struct { """
    r"""float a; int b; } both;
__constant__ float table[4] = {1, 2, 3, 4}; const __constant__ float fixed[2] = {2.f, 3.f};
__device__ float number; __device__ int seen = 0; __device__ const float three = 3.0f; """
    r"""__managed__ int shared_with_host = 7;
constexpr float two = 2.f; __device__ constexpr int lut[3] = {0, 1, 2}; static constexpr int other[] = {2, 3};
__host__ __device__ inline float twice(float v) { return 2 * v; }
__device__ __forceinline__ float f1(float v) { return v; } static __device__ __forceinline__ float f2(float v) { """
    r"""return v; }
__device__ inline __forceinline__ float f3(float v) { return v; } __noinline__ __device__ float f4(float v) { """
    r"""return v; } __inline__ __device__ float f5(float v) { return v; }
__device__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
template <class T> __device__ T same(T v) { return v; }
template <> __device__ float same<float>(float v) { return v; }
class Sum { float v_; public: __host__ __device__ Sum(float v = 0) : v_(v) {} """
    r"""__device__ Sum operator+(const Sum& o) const { return Sum(v_ + o.v_); } """
    r"""__device__ Sum& operator+=(float f) { v_ += f; return *this; } __device__ float get() const; };
__device__ float Sum::get() const { return v_; }
__device__ float2 operator*(float2 a, float b) { return make_float2(a.x * b, a.y * b); }
struct Base { __device__ virtual float run(float v) const { return v; } };
struct Derived : Base { __device__ float run(float v) const override { return 2 * v; } };
typedef float (*Function)(float); __device__ float doubled(float v) { return 2 * v; } """
    r"""__device__ Function pointer = doubled;
struct __align__(16) Four { float v[4]; };
__global__ void all(const float* x, float* out, int n) {
  int i = threadIdx.x; float v = x[i]; auto plus = [&](float a) { return a + v; }; """
    r"""auto same_here = [] __device__ (float a) { return a; };
  Sum s = Sum(v) + Sum(v); s += 0; Derived d; const Base* b = &d; Four four = {v, v, v, v}; atomicAdd(&seen, 1);
  const float results[] = {w[4] * v, rows[1][1] * v, whole * v, both.b * v, table[1] * v, fixed[0] * v, number * v, """
    r"""(three - 1) * v, two * v, lut[2] * v,
                           other[0] * v, twice(v), f1(f2(f3(f4(f5(2 * v))))), factorial(2) * v, same(2 * v), """
    r"""s.get(), (make_float2(v, 1) * 2.f).x,
                           b->run(v), pointer(v), plus(same_here(v)), four.v[0] + four.v[3], """
    r"""(shared_with_host - 5) * v};
  for (int k = 0; k < sizeof(results) / sizeof(float); k++) out[k * n + i] = results[k];
}
torch::Tensor run(torch::Tensor x) {
  float nine[9] = {1, 1, 1, 1, 2, 1, 1, 1, 1}; int two_ = 2; float number_ = 2; int none = 0;
  cudaMemcpyToSymbol(w, nine, sizeof(nine)); cudaMemcpyToSymbol(rows, nine, 9 * sizeof(float)); """
    r"""cudaMemcpyToSymbol(whole, &two_, sizeof(int));
  cudaMemcpyToSymbol(both, &two_, sizeof(int), offsetof(decltype(both), b)); """
    r"""cudaMemcpyToSymbol(number, &number_, sizeof(float)); cudaMemcpyToSymbol(seen, &none, sizeof(int));
  auto out = torch::full({22, x.numel()}, NAN); int n = x.numel();
  all<<<1, n>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  int counted = 0; cudaMemcpyFromSymbol(&counted, seen, sizeof(int)); TORCH_CHECK(counted == n, "counted ", counted);
  return out;
}
"""
)


def test_device_code_of_every_kind():
    """Do constants, globals, tables, recursion, classes, operators, virtual calls and pointers to functions work on the
    device?
    """
    x = torch.randn(100)
    out = simt.load_inline("test_device", "torch::Tensor run(torch::Tensor x);", DEVICE, functions=["run"]).run(x)
    assert torch.equal(out, (2 * x).expand(22, 100))


# ---- whole kernels, in the shapes that courses and benchmarks use ----

WHOLE = (
    r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda.h>
#include <cfloat>
#define WARP 32
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])
#define CUDA_CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { """
    r"""fprintf(stderr, "%s at %d\n", cudaGetErrorString(e), __LINE__); exit(1); } } while (0)

template <typename T> __device__ __forceinline__ T warp_max(T v) {
#pragma unroll
  for (int mask = WARP >> 1; mask > 0; mask >>= 1) v = max(v, __shfl_xor_sync(0xffffffff, v, mask, WARP));
  return v;
}
template <typename T> __inline__ __device__ T block_sum(T v) {
  static __shared__ T part[32];
  int lane = threadIdx.x & 0x1f, warp = threadIdx.x >> 5;
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(~0u, v, offset);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32.f ? part[lane] : (T)0.0f;
  if (warp == 0) for (int offset = 16; offset; offset >>= 1) v += __shfl_down_sync(~0u, v, offset);
  return v;
}
template <typename scalar_t> __global__ void softmax_kernel(const scalar_t* __restrict__ in, """
    r"""scalar_t* __restrict__ out, const int cols) {
  const scalar_t* x = in + (size_t)blockIdx.x * cols; auto* y = &out[blockIdx.x * cols];
  __shared__ float s_max, s_sum; __shared__ float red[WARP];
  float m = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, static_cast<float>(x[i]));
  m = warp_max(m);
  if (threadIdx.x % WARP == 0) red[threadIdx.x / WARP] = m;
  __syncthreads();
  if (threadIdx.x < WARP) { float v = threadIdx.x < blockDim.x / WARP ? red[threadIdx.x] : -FLT_MAX; """
    r"""v = warp_max(v); if (threadIdx.x == 0) s_max = v; }
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf((float)x[i] - s_max);
  sum = block_sum(sum);
  if (!threadIdx.x) s_sum = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] = (scalar_t)(__expf((float)x[i] - s_max) / s_sum);
}
torch::Tensor softmax(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 2, "x must be 2-D and on the GPU");
  auto y = torch::empty_like(x); cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "softmax", ([&] {
    softmax_kernel<scalar_t><<<x.size(0), 256, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), """
    r"""x.size(1)); }));
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}

template <const int BM, const int BN, const int BK, const int TM>
__global__ void __launch_bounds__((BM * BN) / TM, 2) gemm_kernel(int M, int N, int K, float alpha, const float* A, """
    r"""const float* B, float beta, float* C) {
  __shared__ float As[BM * BK]; __shared__ float Bs[BK * BN];
  const uint col = threadIdx.x % BN, row = threadIdx.x / BN;
  A += blockIdx.y * BM * K; B += blockIdx.x * BN; C += blockIdx.y * BM * N + blockIdx.x * BN;
  assert(BM * BK == blockDim.x);
  float sums[TM] = {0.0};
  for (uint k = 0; k < K; k += BK, A += BK, B += BK * N) {
    As[threadIdx.x] = A[threadIdx.x / BK * K + threadIdx.x % BK];
    Bs[threadIdx.x] = B[threadIdx.x / BN * N + threadIdx.x % BN];
    __syncthreads();
    for (uint dot = 0; dot < BK; ++dot) """
    r"""for (uint r = 0; r < TM; ++r) sums[r] += As[(row * TM + r) * BK + dot] * Bs[dot * BN + col];
    __syncthreads();
  }
  for (uint r = 0; r < TM; ++r) { float& c = C[(row * TM + r) * N + col]; c = alpha * sums[r] + beta * c; }
}
torch::Tensor gemm(torch::Tensor A, torch::Tensor B) {
  int M = A.size(0), K = A.size(1), N = B.size(1);
  auto C = torch::zeros({M, N}, torch::TensorOptions().dtype(A.dtype()).device(A.device()));
  const uint BM = 64, BN = 64, BK = 8, TM = 8;
  dim3 gridDim(CEIL_DIV(N, BN), CEIL_DIV(M, BM)); dim3 blockDim((BM * BN) / TM);
  gemm_kernel<BM, BN, BK, TM><<<gridDim, blockDim>>>(M, N, K, 1.0f, A.data_ptr<float>(), B.data_ptr<float>(), 0.0f, """
    r"""C.data_ptr<float>());
  return C;
}

__constant__ float d_mask[9 * 9];
template <int R> __global__ void conv_kernel(const float* in, float* out, int H, int W) {
  constexpr int T = 16; __shared__ float tile[T + 2 * R][T + 2 * R];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int dy = threadIdx.y; dy < T + 2 * R; dy += T)
    for (int dx = threadIdx.x; dx < T + 2 * R; dx += T) {
      int iy = blockIdx.y * T + dy - R, ix = blockIdx.x * T + dx - R;
      tile[dy][dx] = iy >= 0 && iy < H && ix >= 0 && ix < W ? in[iy * W + ix] : 0.0f;
    }
  __syncthreads();
  if (x >= W || y >= H) return;
  float sum = 0;
  for (int i = 0; i <= 2 * R; i++) for (int j = 0; j <= 2 * R; j++) sum += tile[threadIdx.y + i][threadIdx.x + j] * """
    r"""d_mask[i * (2 * R + 1) + j];
  out[y * W + x] = sum;
}
torch::Tensor conv(torch::Tensor x, torch::Tensor mask) {
  CUDA_CHECK(cudaMemcpyToSymbol(d_mask, mask.contiguous().data_ptr<float>(), mask.numel() * sizeof(float)));
  auto y = torch::empty_like(x); int H = x.size(0), W = x.size(1); """
    r"""dim3 block(16, 16), grid(CEIL_DIV(W, 16), CEIL_DIV(H, 16));
  switch (mask.size(0)) {
    case 3: conv_kernel<1><<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), H, W); break;
    case 5: conv_kernel<2><<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), H, W); break;
    default: TORCH_CHECK(false, "no kernel for size ", mask.size(0));
  }
  return y;
}

__global__ void attention_kernel(const float* Q, const float* K, const float* V, int N, int d, float scale, float* O) {
  extern __shared__ float sram[]; float* Kj = sram; float* Vj = &sram[32 * d]; float* S = &sram[32 * d * 2];
  const int t = threadIdx.x, base = (blockIdx.x * gridDim.y + blockIdx.y) * N * d, """
    r"""row = base + (blockIdx.z * 32 + t) * d;
  float m = -INFINITY, l = 0;
  for (int j = 0; j < N / 32; j++) {
    for (int x = 0; x < d; x++) { Kj[t * d + x] = K[base + (j * 32 + t) * d + x]; """
    r"""Vj[t * d + x] = V[base + (j * 32 + t) * d + x]; }
    __syncthreads();
    float best = m;
    for (int y = 0; y < 32; y++) { float s = 0; for (int x = 0; x < d; x++) s += Q[row + x] * Kj[y * d + x]; """
    r"""S[t * 33 + y] = s * scale; best = max(best, s * scale); }
    const float old = expf(m - best); l *= old; m = best;
    for (int x = 0; x < d; x++) O[row + x] *= old;
    for (int y = 0; y < 32; y++) { const float p = __expf(S[t * 33 + y] - m); l += p; """
    r"""for (int x = 0; x < d; x++) O[row + x] += p * Vj[y * d + x]; }
    __syncthreads();
  }
  for (int x = 0; x < d; x++) O[row + x] /= l;
}
torch::Tensor attention(torch::Tensor Q, torch::Tensor K, torch::Tensor V) {
  const int B = Q.size(0), H = Q.size(1), N = Q.size(2), d = Q.size(3); auto O = torch::zeros_like(Q);
  const int bytes = (2 * 32 * d + 32 * 33) * sizeof(float); int most; """
    r"""cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlock, 0); TORCH_CHECK(bytes <= most);
  attention_kernel<<<dim3(B, H, N / 32), 32, bytes>>>(Q.data_ptr<float>(), K.data_ptr<float>(), V.data_ptr<float>(), """
    r"""N, d, 1.0 / sqrt(d), O.data_ptr<float>());
  return O;
}

__global__ void relu4_kernel(float* x, float* y, int N) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < N) { float4 v = FLOAT4(x[i]); v.x = fmaxf(0.0f, v.x); v.y = fmaxf(0.0f, v.y); v.z = fmaxf(0.0f, v.z); """
    r"""v.w = fmaxf(0.0f, v.w); FLOAT4(y[i]) = v; }
}
torch::Tensor relu4(torch::Tensor x) {
  float *in, *out; size_t bytes = x.numel() * sizeof(float); CUDA_CHECK(cudaMalloc((void**)&in, bytes)); """
    r"""CUDA_CHECK(cudaMalloc(&out, bytes));
  cudaMemcpy(in, x.data_ptr<float>(), bytes, cudaMemcpyHostToDevice);
  relu4_kernel<<<CEIL_DIV(x.numel() / 4, 64), 64>>>(in, out, x.numel()); CUDA_CHECK(cudaDeviceSynchronize());
  auto y = torch::empty_like(x); cudaMemcpy(y.data_ptr<float>(), out, bytes, cudaMemcpyDeviceToHost); cudaFree(in); """
    r"""cudaFree(out);
  return y;
}

template <typename scalar_t> __global__ void rows_kernel(const torch::PackedTensorAccessor32<scalar_t, 2, """
    r"""torch::RestrictPtrTraits> x, torch::PackedTensorAccessor32<scalar_t, 1> sums) {
  scalar_t sum = 0; for (int j = 0; j < x.size(1); j++) sum += x[blockIdx.x][j]; sums[blockIdx.x] = sum;
}
torch::Tensor rows(torch::Tensor x) {
  auto sums = torch::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rows", """
    r"""[&] { rows_kernel<scalar_t><<<x.size(0), 1>>>(x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(), """
    r"""sums.packed_accessor32<scalar_t, 1>()); });
  return sums;
}
"""
)
HEADS = [m + ";" for m in re.findall(r"^torch::Tensor \w+\([^)]*\)", WHOLE, re.MULTILINE)]


@pytest.fixture(scope="module")
def whole():
    return simt.load_inline(
        "test_whole", "\n".join(HEADS), WHOLE, functions=[h.split("(")[0].split()[1] for h in HEADS]
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_softmax_with_shuffles(whole, dtype):
    """Does a softmax of warp shuffles and a static array inside a device function agree with torch?"""
    x = torch.randn(8, 1000).to(dtype)
    torch.testing.assert_close(whole.softmax(x), x.softmax(1), atol=1e-5, rtol=1e-3 if dtype == torch.float16 else 1e-5)


def test_blocktiled_matmul(whole):
    """Does a matmul in tiles, with variables called gridDim and blockDim on the host, agree with torch?"""
    a, b = torch.randn(128, 64), torch.randn(64, 192)
    torch.testing.assert_close(whole.gemm(a, b), a @ b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [3, 5])
def test_convolution_with_constant_mask(whole, size):
    """Does a tiled convolution with its mask in constant memory agree with torch?"""
    x, mask = torch.randn(37, 50), torch.randn(size, size)
    torch.testing.assert_close(
        whole.conv(x, mask), F.conv2d(x[None, None], mask[None, None], padding=size // 2)[0, 0], atol=1e-4, rtol=1e-4
    )


def test_attention_with_carved_shared_memory(whole):
    """Does attention in blocks, with three arrays carved out of one, agree with torch?"""
    q, k, v = (torch.randn(2, 3, 64, 16) for _ in range(3))
    torch.testing.assert_close(whole.attention(q, k, v), F.scaled_dot_product_attention(q, k, v), atol=1e-4, rtol=1e-3)


def test_vector_loads_and_own_memory(whole):
    """Does a kernel on float4, on memory from cudaMalloc, agree with torch?"""
    x = torch.randn(1024)
    assert torch.equal(whole.relu4(x), x.relu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_accessors_of_tensors_that_are_not_contiguous(whole, dtype):
    """Do packed accessors follow strides?"""
    x = torch.randn(30, 20).to(dtype).t()
    torch.testing.assert_close(whole.rows(x), x.sum(1))
