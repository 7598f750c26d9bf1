"""attention, step 1: three kernels, and the matrix of scores in memory.

It is the definition, operation by operation: a score for each pair of query and key, a softmax of each row of scores,
and a sum of values for each query. At the problem's size the scores are 537 million floats, 2.1 GB; the three kernels
write them twice and read them four times.

Bought: nothing yet. At full size simt counts 22,742 million sectors that are loaded, 728 GB, in 4,345 million requests:
a warp's load of keys touches 9 sectors.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal);"

cuda_source = r"""
#include <cuda_fp16.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int SIDE = 16;      // a block of scores or of results is SIDE x SIDE, one a thread
constexpr int THREADS = 256;  // of a block of the softmax

// scores (heads, length, length), of queries and keys. blockIdx.z counts the heads.
__global__ void score_kernel(const __half* q, const __half* k, float* scores, int length, int D, float scale,
                             bool causal) {
    const int key = blockIdx.x * SIDE + threadIdx.x, query = blockIdx.y * SIDE + threadIdx.y;
    if (query >= length || key >= length) return;
    q += ((int64_t)blockIdx.z * length + query) * D;
    k += ((int64_t)blockIdx.z * length + key) * D;
    float score = 0.0f;
    for (int d = 0; d < D; ++d) score += __half2float(q[d]) * __half2float(k[d]);
    scores[((int64_t)blockIdx.z * length + query) * length + key] = causal && key > query ? -INFINITY : score * scale;
}

// Returns the largest or the sum of all threads' values, in every thread. All threads of the block must call it.
template <bool largest>
__device__ float combine(float value) {
    __shared__ float part[THREADS];
    __syncthreads();  // all have read the result before
    part[threadIdx.x] = value;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            const float other = part[threadIdx.x + half];
            part[threadIdx.x] = largest ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
        }
    }
    __syncthreads();
    return part[0];
}

// The softmax of a row of scores, in place. blockIdx.x counts the rows of all heads.
__global__ void softmax_kernel(float* scores, int length) {
    scores += (int64_t)blockIdx.x * length;
    float top = -INFINITY;
    for (int j = threadIdx.x; j < length; j += THREADS) top = fmaxf(top, scores[j]);
    top = combine<true>(top);
    float sum = 0.0f;
    for (int j = threadIdx.x; j < length; j += THREADS) sum += expf(scores[j] - top);
    sum = combine<false>(sum);
    for (int j = threadIdx.x; j < length; j += THREADS) scores[j] = expf(scores[j] - top) / sum;
}

// out (heads, length, D): weights (heads, length, length) times v. blockIdx.z counts the heads.
__global__ void value_kernel(const float* weights, const __half* v, __half* out, int length, int D) {
    const int d = blockIdx.x * SIDE + threadIdx.x, query = blockIdx.y * SIDE + threadIdx.y;
    if (query >= length || d >= D) return;
    weights += ((int64_t)blockIdx.z * length + query) * length;
    v += (int64_t)blockIdx.z * length * D + d;
    float sum = 0.0f;
    for (int j = 0; j < length; ++j) sum += weights[j] * __half2float(v[(int64_t)j * D]);
    out[((int64_t)blockIdx.z * length + query) * D + d] = __float2half(sum);
}

torch::Tensor attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal) {
    const std::pair<const char*, torch::Tensor> inputs[] = {{"q", q}, {"k", k}, {"v", v}};
    for (const auto& [name, x] : inputs) {
        TORCH_CHECK(x.is_cuda(), name, " is on ", x.device(), ": move it to the GPU with .cuda()");
        TORCH_CHECK(x.scalar_type() == torch::kHalf, name, " is ", x.scalar_type(), ", not float16: use .half()");
        TORCH_CHECK(x.dim() == 4, name, " has ", x.dim(), " dimensions instead of 4");
        TORCH_CHECK(x.sizes() == q.sizes(), name, " is ", x.sizes(), " and q is ", q.sizes(), ": they must be equal");
    }
    TORCH_CHECK(q.size(0) * q.size(1) <= 65535, "at most 65,535 heads: a grid has no more rows");
    q = q.contiguous();
    k = k.contiguous();
    v = v.contiguous();
    torch::Tensor out = torch::empty_like(q);
    if (out.numel() == 0) return out;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(q.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const auto data = [](const torch::Tensor& x) { return (__half*)x.data_ptr<at::Half>(); };
    const int heads = q.size(0) * q.size(1), length = q.size(2), D = q.size(3);
    const auto tiles = [](int n) { return (n + SIDE - 1) / SIDE; };
    torch::Tensor scores = torch::empty({heads, length, length}, q.options().dtype(torch::kFloat32));
    const dim3 threads(SIDE, SIDE);
    score_kernel<<<dim3(tiles(length), tiles(length), heads), threads, 0, stream>>>(
        data(q), data(k), scores.data_ptr<float>(), length, D, 1.0f / std::sqrt((float)D), causal);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    softmax_kernel<<<heads * length, THREADS, 0, stream>>>(scores.data_ptr<float>(), length);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    value_kernel<<<dim3(tiles(D), tiles(length), heads), threads, 0, stream>>>(
        scores.data_ptr<float>(), data(v), data(out), length, D);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

kernels = load_inline(
    name="attention_01_scores_in_memory",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["attention_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: q, k, v (N, heads, length, head_dim) float16 on a GPU -> the same shape."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v):
        return kernels.attention_forward(q, k, v, self.causal)
