"""Kernels whose counters the tests know, with a mark on each line that they count."""

import simt
from simt.counting.report import Report

SOURCE = (
    r"""
#include <torch/extension.h>

// Lane l touches element index[l] of a table, or none where that is negative.
template <class T>
__global__ void global_access(const int* index, const T* from, T* to) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int at = index[t];                                                  // @index
  if (at < 0) return;
  const T value = from[at];                                                 // @global load
  to[at] = value;                                                           // @global store
}

template <class T>
__global__ void shared_access(const int* index, float* out) {
  __shared__ T table[1024];
  const int t = threadIdx.x, at = index[blockIdx.x * blockDim.x + t];
  volatile char* raw = (volatile char*)table;
  if (t == 0) raw[0] = 0;
  __syncthreads();
  if (at < 0) return;
  const T value = table[at];                                                // @shared load
  __syncwarp(__activemask());
  table[at] = value;                                                        // @shared store
  if (t < 0) out[t] = raw[5];
}

#define CASES(name, ...)                                                                         \
  void run_##name(std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b, int threads) { \
    const int blocks = index.numel() / threads;                                                  \
    const int* at = index.data_ptr<int>();                                                       \
    if (type == "char") name<char><<<blocks, threads>>>(at, __VA_ARGS__(char));                  \
    if (type == "short") name<short><<<blocks, threads>>>(at, __VA_ARGS__(short));               \
    if (type == "float") name<float><<<blocks, threads>>>(at, __VA_ARGS__(float));               \
    if (type == "double") name<double><<<blocks, threads>>>(at, __VA_ARGS__(double));            \
    if (type == "float4") name<float4><<<blocks, threads>>>(at, __VA_ARGS__(float4));            \
  }
#define TABLES(T) (const T*)a.data_ptr(), (T*)b.data_ptr()
#define NOTHING(T) (float*)b.data_ptr()
CASES(global_access, TABLES)
CASES(shared_access, NOTHING)

__global__ void transposed(const float* x, float* y, int pad) {
  extern __shared__ float tile[];
  const int c = threadIdx.x, r = threadIdx.y;
  tile[r * (32 + pad) + c] = x[r * 32 + c];                                 // @tile rows
  __syncthreads();
  y[r * 32 + c] = tile[c * (32 + pad) + r];                                 // @tile columns
}
void run_transposed(torch::Tensor x, torch::Tensor y, int pad) {
  transposed<<<1, dim3(32, 32), 32 * (32 + pad) * 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), pad);
}

__global__ void bins(const int* to, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&count[to[i]], 1);                                   // @atomic
}
void run_bins(torch::Tensor to, torch::Tensor count) {
  bins<<<(to.numel() + 127) / 128, 128>>>(to.data_ptr<int>(), count.data_ptr<int>(), to.numel());
}
__global__ void shared_bins(const int* to, int* count, int n) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&own[to[i]], 1);                                     // @shared atomic
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&count[threadIdx.x], own[threadIdx.x]);
}
void run_shared_bins(torch::Tensor to, torch::Tensor count) {
  shared_bins<<<(to.numel() + 127) / 128, 128>>>(to.data_ptr<int>(), count.data_ptr<int>(), to.numel());
}

// An atomic addition of something else than 1.
__global__ void shared_sums(const int* to, int* sums) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[to[threadIdx.x]], threadIdx.x);                            // @shared sum
  __syncthreads();
  if (threadIdx.x < 64) sums[threadIdx.x] = own[threadIdx.x];
}
void run_shared_sums(torch::Tensor to, torch::Tensor sums) { """
    r"""shared_sums<<<1, 128>>>(to.data_ptr<int>(), sums.data_ptr<int>()); }

__constant__ float weight[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
__device__ float offset[32];
__global__ void weighted(const float* x, float* y, int n) {
  const int t = threadIdx.x;
  float sum = offset[t % 32];                                               // @device variable
  for (int k = 0; k < n; k++)
    sum += x[t] * weight[k];                                                // @constant
  y[t] = sum + weight[t % 9];                                               // @constants
}
void run_weighted(torch::Tensor x, torch::Tensor y, int n) { """
    r"""weighted<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n); }

__global__ void early(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i];                                                              // @early
}
void run_early(torch::Tensor x, torch::Tensor y, int n, int blocks, int threads) {
  early<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}

// A thread's own number of steps, far more than what is kept of it at once, with and without barriers between.
__global__ void long_loops(volatile const float* x, float* y, const int* steps, int meet) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < steps[i]; k++)                                      // @steps
      sum += x[k % 64];                                                     // @long
    if (meet) __syncthreads();                                              // @barrier
  }
  y[i] = sum;
}
void run_long_loops(torch::Tensor x, torch::Tensor y, torch::Tensor steps, int threads, int meet) {
  long_loops<<<steps.numel() / threads, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), """
    r"""steps.data_ptr<int>(), meet);
}

// Lanes of a warp that need one another to go on, as they may since Volta.
__global__ void locked(int* lock, int* count) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int*)count = *(volatile int*)count + 1;                    // @locked
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
__global__ void locked_outside(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  *(volatile int*)count = *(volatile int*)count + 1;
  __threadfence();
  atomicExch(lock, 0);
}
void run_locked(torch::Tensor lock, torch::Tensor count, bool outside) {
  if (outside) locked_outside<<<2, 64>>>(lock.data_ptr<int>(), count.data_ptr<int>());
  else locked<<<2, 64>>>(lock.data_ptr<int>(), count.data_ptr<int>());
}

__device__ __noinline__ float looked_up(volatile const float* x, int i, int depth) {
  if (depth == 0) return x[i];                                              // @called
  return looked_up(x, i, depth - 1) + x[depth];                             // @depth
}
__global__ void calls(const float* x, float* y) {
  const int t = threadIdx.x;
  float v = 0;
  if (t % 2) v = looked_up(x, t, t % 4);
  v += x[t];                                                                // @after the call
  y[t] = v + looked_up(x, t, 1);
}
void run_calls(torch::Tensor x, torch::Tensor y) { calls<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>()); }

__global__ void chosen(volatile const int* x, int* y) {
  const int t = threadIdx.x;
  int v = 0;
  switch (t % 8) {
    case 0: v = x[1]; break;                                                // @case
    case 1: v = x[2] * 3; break;
    case 2: v = x[3] + 5; break;
    case 3: v = x[4] ^ 7; break;
    case 4: v = x[5] - 9; break;
    case 5: v = x[6] * x[7]; break;
    case 6: v = x[8] / 3; break;
    default: v = x[9];
  }
  y[t] = v + x[t];                                                          // @after the switch
}
void run_chosen(torch::Tensor x, torch::Tensor y) { chosen<<<1, 64>>>(x.data_ptr<int>(), y.data_ptr<int>()); }

struct Plain { float a, b, c, d; };
struct Three { float a, b, c; };
__global__ void structures(const Plain* p, Plain* q, const Three* s, Three* t) {
  const int i = threadIdx.x;
  q[i] = p[i];                                                              // @four floats
  t[i] = s[i];                                                              // @three floats
}
void run_structures(torch::Tensor x, torch::Tensor y) {
  structures<<<1, 32>>>((const Plain*)x.data_ptr(), (Plain*)y.data_ptr(), (const Three*)x.data_ptr(), """
    r"""(Three*)y.data_ptr());
}

__global__ void saxpy(float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];
}
void run_saxpy(torch::Tensor x, torch::Tensor y) { """
    r"""saxpy<<<y.numel() / 64, 64>>>(2.0f, x.data_ptr<float>(), y.data_ptr<float>()); }

// Block b runs b % 7 + 1 times over its elements.
__global__ void uneven(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k <= blockIdx.x % 7; k++) sum += ((volatile const float*)x)[i];
  y[i] = sum;
}
void run_uneven(torch::Tensor x, torch::Tensor y) { """
    r"""uneven<<<y.numel() / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>()); }

__global__ void windows(const float* x, float* y, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < width; k++) sum += x[i + k];
  y[i] = sum;
}
void run_windows(torch::Tensor x, torch::Tensor y, int width) { """
    r"""windows<<<y.numel() / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), width); }

__global__ void shuffled(const float* x, float* y) {
  float v = x[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = v;
}
void run_shuffled(torch::Tensor x, torch::Tensor y) { shuffled<<<1, 128>>>(x.data_ptr<float>(), y.data_ptr<float>()); }

// A function whose end is where lanes meet again, called by another, in a branch and outside.
__device__ int warp_sum(int value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}
__device__ int block_sum(int value) {
  __shared__ int sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) sums[warp] = value;                                        // @a warp's sum
  __syncthreads();
  if (warp == 0) value = warp_sum(lane < 8 ? sums[lane] : 0);
  return value;
}
__global__ void summed(const int* x, int* y, int n) {
  int own = 0;
  for (int i = threadIdx.x; i < n; i += 256) own += x[i];
  const int sum = block_sum(own);
  y[threadIdx.x] = sum;                                                     // @after sums
}
void run_summed(torch::Tensor x, torch::Tensor y) { """
    r"""summed<<<1, 256>>>(x.data_ptr<int>(), y.data_ptr<int>(), x.numel()); }

__global__ void braced(float* y) {
  *reinterpret_cast<float4*>(y + 4 * threadIdx.x) = {1.0f * threadIdx.x, 2.0f, 3.0f, 4.0f};  // @braced
  reinterpret_cast<float4*>(y)[32 + threadIdx.x] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);  // @made
  reinterpret_cast<int4*>(y)[64 + threadIdx.x] = int4();  // @empty
}
void run_braced(torch::Tensor y) { braced<<<1, 32>>>(y.data_ptr<float>()); }

__global__ void fails(float* y) {
  y[threadIdx.x] = 1;
  if (threadIdx.x == 5) __trap();
}
void run_fails(torch::Tensor y) { fails<<<4, 32>>>(y.data_ptr<float>()); }
"""
)

NAMES = (
    "run_global_access run_shared_access run_transposed run_bins run_shared_bins run_shared_sums run_weighted "
    "run_early run_long_loops run_locked run_calls "
    "run_chosen run_structures run_saxpy run_uneven run_windows run_shuffled run_summed run_braced run_fails"
).split()
DECLARED = "\n".join(
    line.split("{")[0].strip() + ";" for line in SOURCE.splitlines() if line.startswith("void run_")
) + "".join(
    f"\nvoid run_{n}(std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b, int threads);"
    for n in ("global_access", "shared_access")
)
BYTES = {"char": 1, "short": 2, "float": 4, "double": 8, "float4": 16}


def line_of(mark: str, source: str = SOURCE) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if line.rstrip().endswith(f"// @{mark}"))


def at(report: Report, mark: str, source: str = SOURCE) -> simt.Counters:
    """The counters of the line with a mark."""
    return next((row.counters for row in report.lines if row.line == line_of(mark, source)), simt.Counters())
