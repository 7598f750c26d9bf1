"""mend_layernorm: one block finds a row's mean and deviation, then one thread an element applies them.

In Python:

    for row in every row of x:
        mean = row.mean()
        rstd = 1 / sqrt(((row - mean) ** 2).mean() + eps)
        for w in range(W):
            y[row, w] = (row[w] - mean) * rstd * weight[w] + bias[w]

Kernels: row_statistics_kernel, one block a row, which reads four elements at once where a row allows it;
normalise_kernel, one thread an element.

Your task: 6 defects are in this file, unmarked. Find and fix each, so that ModelNew computes what Model in
kernels_ref/mend_layernorm/model.py computes, for any shape.

Grade it, with or without a GPU:  grader grade kernels_student/mend_layernorm.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor layernorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);
"""

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 128;  // a block: a whole number of warps

// Sum of every thread's v, returned to every thread of the block.
__device__ float block_sum(float v) {
    __shared__ float warp_sum[THREADS / WARP];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v += __shfl_down_sync(0xffffffff, v, offset);  // lane 0 ends with the sum of its warp
    }
    if (threadIdx.x % WARP == 0) warp_sum[threadIdx.x / WARP] = v;
    float sum = 0.0f;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += warp_sum[warp];
    __syncthreads();
    return sum;
}

// One block a row: x (rows, W) -> mean, rstd = 1 / sqrt(variance + eps), both (rows).
__global__ void row_statistics_kernel(const float* x, float* mean, float* rstd, int W, float eps) {
    const float* row = x + (int64_t)blockIdx.x * W;
    if (threadIdx.x >= W) return;

    // The row is read as this many float4; what is left, one element at a time.
    const int quads = W / 4;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < quads; i += THREADS) {
        const float4 v = reinterpret_cast<const float4*>(row)[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (int i = 4 * quads + threadIdx.x; i < W; i += THREADS) sum += row[i];
    const float centre = block_sum(sum) / W;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < W; i += THREADS) squares += row[i] * row[i];
    const float variance = block_sum(squares) / W - centre * centre;

    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre;
        rstd[blockIdx.x] = 1.0f / sqrtf(variance + eps);
    }
}

// y = (x - mean) * rstd * weight + bias, one thread for each of the `total` elements of x (rows, W).
__global__ void normalise_kernel(const float* x, const float* mean, const float* rstd, const float* weight,
                                 const float* bias, float* y, int W, int64_t total) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = i / W;
    const int w = i % W;
    y[i] = (x[i] - mean[row]) * rstd[row] * weight[w] + bias[w];
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
}

torch::Tensor layernorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    check(x, "x", x.device());
    check(weight, "weight", x.device());
    check(bias, "bias", x.device());
    TORCH_CHECK(x.dim() >= 1 && weight.numel() == x.size(-1) && bias.numel() == x.size(-1),
                "weight and bias need one element for each column of x");
    x = x.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();

    torch::Tensor y = torch::empty_like(x);
    const int64_t total = x.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error
    const int64_t W = x.size(-1), rows = total / W;
    TORCH_CHECK(rows <= INT_MAX && W <= INT_MAX, "x has more than 2^31 - 1 rows or columns");

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor mean = torch::empty({rows}, x.options());
    torch::Tensor rstd = torch::empty({rows}, x.options());
    row_statistics_kernel<<<rows, THREADS, 0, stream>>>(
        x.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), W, eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    const int64_t blocks = total / THREADS;
    normalise_kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), weight.data_ptr<float>(),
        bias.data_ptr<float>(), y.data_ptr<float>(), W, total);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="mend_layernorm", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["layernorm_forward"]
)


class ModelNew(nn.Module):
    """The same normalisation as Model: x (N, C, H, W) float32 on a GPU -> the same shape."""

    def __init__(self, width):
        super().__init__()
        self.ln = nn.LayerNorm(width)  # holds the weights, is never called

    def forward(self, x):
        return kernels.layernorm_forward(x, self.ln.weight, self.ln.bias, self.ln.eps)

# Made from kernels_ref/mend_layernorm/solution.py by `grader student`; skeleton 2d927ea2b556.
