"""bias_scale_sigmoid, step 1: a kernel for each operator, one thread per element.

As in the model's own line: add the bias, multiply by the scale, take the sigmoid. Each kernel reads all elements and
writes them, and in two of them every thread divides twice to find its channel.

Bought: nothing yet. At full size simt counts 214 million sectors moved by the three kernels and 33 million 64-bit
divisions of a warp.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor bias_scale_sigmoid_forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);"

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block

// out = in + bias[c], for in and out (N, C, pixels) of `total` elements.
__global__ void add_bias_kernel(const float* in, const float* bias, float* out, int64_t total,
                                int64_t C, int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < total) out[i] = in[i] + bias[i / pixels % C];
}

// out = in * scale[c], likewise.
__global__ void times_scale_kernel(const float* in, const float* scale, float* out, int64_t total,
                                   int64_t C, int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < total) out[i] = in[i] * scale[i / pixels % C];
}

// out = sigmoid(in).
__global__ void sigmoid_kernel(const float* in, float* out, int64_t total) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < total) out[i] = 1.0f / (1.0f + expf(-in[i]));  // exp may overflow: 1 / infinity is the 0 that is meant
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
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t total = x.numel();
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "x has more elements than a grid of blocks of ", THREADS, " threads");
    torch::Tensor sum = torch::empty_like(x), product = torch::empty_like(x);
    add_bias_kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), sum.data_ptr<float>(), total, C, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    times_scale_kernel<<<blocks, THREADS, 0, stream>>>(
        sum.data_ptr<float>(), scale.data_ptr<float>(), product.data_ptr<float>(), total, C, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    sigmoid_kernel<<<blocks, THREADS, 0, stream>>>(product.data_ptr<float>(), y.data_ptr<float>(), total);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="bias_scale_sigmoid_01_three_kernels",
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
