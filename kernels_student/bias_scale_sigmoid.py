"""bias_scale_sigmoid: three elementwise operators in one kernel, so that x is read once and y written once.

What is to be computed, in Python:

    for n, c, p in every image, channel and pixel:
        v = (x[n, c, p] + bias[c]) * scale[c]
        y[n, c, p] = 1 / (1 + exp(-v))

Kernel: bias_scale_sigmoid_kernel. A block works on one plane (n, c), so that bias and scale are fetched once a thread
and no thread divides to find it. Three kernels would move three times the bytes, and bytes are what it costs.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/bias_scale_sigmoid/model.py computes, for any shape.

  1. fetch this plane's bias and scale; walk over this thread's pixels (about 9 lines)

Grade it, with or without a GPU:  grader grade kernels_student/bias_scale_sigmoid.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor bias_scale_sigmoid_forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);"

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;           // a block
constexpr int64_t MAX_GRID_Y = 65535;

// x (N, C, pixels), bias (C), scale (C) -> y (N, C, pixels). blockIdx.x is the plane n * C + c; the threads of all its
// blocks (blockIdx.y) walk over its pixels side by side.
__global__ void bias_scale_sigmoid_kernel(const float* x, const float* bias, const float* scale, float* y,
                                          int C, int64_t pixels) {
    // YOUR CODE HERE: fetch this plane's bias and scale; walk over this thread's pixels (about 9 lines)
}

// The kernel reads bare memory: refuse a tensor that is not what it takes it for.
static void check(const torch::Tensor& t, const char* name, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
}

torch::Tensor bias_scale_sigmoid_forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    check(x, "x", x.device());
    check(bias, "bias", x.device());
    check(scale, "scale", x.device());
    TORCH_CHECK(x.dim() == 4, "x has ", x.dim(), " dimensions instead of 4");
    const int64_t N = x.size(0), C = x.size(1), pixels = x.size(2) * x.size(3);
    TORCH_CHECK(bias.sizes() == torch::IntArrayRef({C, 1, 1}), "bias must be (", C, ", 1, 1), not ", bias.sizes());
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({C, 1, 1}), "scale must be (", C, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(N * C <= INT_MAX, "x has more than 2^31 - 1 planes (images times channels)");
    x = x.contiguous();
    bias = bias.contiguous();
    scale = scale.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    // About 4 pixels a thread.
    const int64_t blocks_a_plane = std::min((pixels + 4 * THREADS - 1) / (4 * THREADS), MAX_GRID_Y);
    bias_scale_sigmoid_kernel<<<dim3(N * C, blocks_a_plane), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), C, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="bias_scale_sigmoid",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["bias_scale_sigmoid_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, C, H, W) float32 on a GPU, bias and scale (C, 1, 1) -> (N, C, H, W)."""

    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return kernels.bias_scale_sigmoid_forward(x, self.bias, self.scale)

# Made from kernels_ref/bias_scale_sigmoid/solution.py by `grader student`; skeleton 9f93db39da96.
