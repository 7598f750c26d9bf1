"""logsumexp with its backward: each channel's share of the sum, times the gradient that comes in.

y = log(sum(exp(x[c]) for c in channels)), so dy/dx[c] = exp(x[c]) / sum(exp(x)) = exp(x[c] - y): the softmax. From the
gradient gy of y, in Python:

    for n, p in every image and pixel:
        for c in channels:
            gx[n, c, p] = gy[n, 0, p] * exp(x[n, c, p] - y[n, 0, p])

No exponent is above 0, as y is at least the largest x: nothing overflows, and forward's result is all that has to be
saved beside x. Nothing is summed either.

Kernels: logsumexp_kernel, the forward; logsumexp_backward_kernel, one thread a pixel, which fetches gy and y once and
walks over the channels. A channel's pixels are neighbours, so that at every step a warp writes 32 neighbouring values.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew has the gradients that Model in
kernels_ref/logsumexp/model.py has, for any shape.

  1. find this thread's pixel; fetch gy and y once; store the gradient of each channel (about 8 lines)

Grade it, with or without a GPU:  grader grade kernels_student/logsumexp_backward.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor logsumexp_forward(torch::Tensor x);
torch::Tensor logsumexp_backward(torch::Tensor gy, torch::Tensor x, torch::Tensor y);
"""

cuda_source = r"""
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block

// x (N, C, pixels) -> y (N, pixels), `total` elements. T is float or double.
template <typename T>
__global__ void logsumexp_kernel(const T* x, T* y, int64_t total, int64_t C, int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int64_t n = i / pixels;
    x += n * C * pixels + i % pixels;  // this pixel in channel 0; channel c lies c * pixels further on

    T top = -INFINITY;
    for (int64_t c = 0; c < C; ++c) top = x[c * pixels] > top ? x[c * pixels] : top;
    if (isinf(top)) top = 0;  // infinity - infinity is no number; without a shift exp gives what is meant

    T sum = 0;
    for (int64_t c = 0; c < C; ++c) sum += exp(x[c * pixels] - top);
    y[i] = top + log(sum);
}

// gy, y (N, pixels), `total` elements each, x (N, C, pixels) -> gx (N, C, pixels).
template <typename T>
__global__ void logsumexp_backward_kernel(const T* gy, const T* x, const T* y, T* gx, int64_t total, int64_t C,
                                          int64_t pixels) {
    // YOUR CODE HERE: find this thread's pixel; fetch gy and y once; store the gradient of each channel (about 8 lines)
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, const torch::Tensor& x) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.device() == x.device() && t.scalar_type() == x.scalar_type(), name, " is not like x");
}

torch::Tensor logsumexp_forward(torch::Tensor x) {
    check(x, "x", x);
    TORCH_CHECK(x.dim() == 4, "x has ", x.dim(), " dimensions instead of 4");
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    x = x.contiguous();

    torch::Tensor y = torch::empty({N, 1, H, W}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "logsumexp_forward", [&] {
        logsumexp_kernel<scalar_t><<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), total, C, H * W);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}

// x, y: what forward read and made. Returns gx.
torch::Tensor logsumexp_backward(torch::Tensor gy, torch::Tensor x, torch::Tensor y) {
    check(gy, "gy", x);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    x = x.contiguous();

    torch::Tensor gx = torch::empty_like(x);
    const int64_t total = gy.numel();
    if (gx.numel() == 0) return gx;

    const c10::cuda::CUDAGuard guard(x.device());
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "logsumexp_backward", [&] {
        logsumexp_backward_kernel<scalar_t><<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), gx.data_ptr<scalar_t>(), total,
            x.size(1), x.size(2) * x.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return gx;
}
"""

kernels = load_inline(
    name="logsumexp_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["logsumexp_forward", "logsumexp_backward"],
)


class LogSumExp(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x):
        y = kernels.logsumexp_forward(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        # Autograd calls this only where x, the one argument, needs its gradient.
        return kernels.logsumexp_backward(gy, *ctx.saved_tensors)


class ModelNew(nn.Module):
    """The same function as Model with the same gradient: x (N, C, H, W) on a GPU -> (N, 1, H, W)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return LogSumExp.apply(x)

# Made from kernels_ref/logsumexp/backward.py by `grader student`; skeleton 299d8cb7505a.
