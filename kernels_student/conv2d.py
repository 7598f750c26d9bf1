"""conv2d: one thread computes one output element.

What is to be computed, in Python (stride 1, no padding):

    for n, oc, oy, ox in every position of y:
        total = bias[oc]
        for c, ky, kx in every position of one weight[oc]:
            total += x[n, c, oy + ky, ox + kx] * weight[oc, c, ky, kx]
        y[n, oc, oy, ox] = total

Kernel: conv2d_kernel. The elements of y are numbered as they lie in memory, ox fastest, and thread i computes element
i. So the 32 threads of a warp read neighbouring pixels of x and write neighbouring elements of y.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/conv2d/model.py computes, for any shape.

  1. find this thread's n, oc, oy, ox; leave if it has none; sum the window; store (about 17 lines)

Grade it, with or without a GPU:  grader grade kernels_student/conv2d.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor conv2d_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);"

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block

// x (N, C, H, W), weight (OC, C, KH, KW), bias (OC) -> y (N, OC, OH, OW), `total` elements.
__global__ void conv2d_kernel(const float* x, const float* weight, const float* bias, float* y, int64_t total,
                              int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    // YOUR CODE HERE: find this thread's n, oc, oy, ox; leave if it has none; sum the window; store (about 17 lines)
}

// The kernel reads bare memory: refuse a tensor that is not what it takes it for.
static void check(const torch::Tensor& t, const char* name, int64_t dims, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

torch::Tensor conv2d_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    check(x, "x", 4, x.device());
    check(weight, "weight", 4, x.device());
    check(bias, "bias", 1, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = weight.size(0), KH = weight.size(2), KW = weight.size(3);
    TORCH_CHECK(weight.size(1) == C, "x has ", C, " channels, the weight is for ", weight.size(1));
    TORCH_CHECK(bias.size(0) == OC, "bias has ", bias.size(0), " elements for ", OC, " output channels");
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    x = x.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();

    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    torch::Tensor y = torch::empty({N, OC, OH, OW}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    conv2d_kernel<<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), total,
        C, H, W, OC, KH, KW, OH, OW);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(name="conv2d", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["conv2d_forward"])


class ModelNew(nn.Module):
    """The same convolution as Model: x (N, in_channels, H, W) float32 on a GPU -> (N, out_channels, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds the weights, is never called

    def forward(self, x):
        return kernels.conv2d_forward(x, self.conv.weight, self.conv.bias)

# Made from kernels_ref/conv2d/solution.py by `grader student`; skeleton a0348dc19a1d.
