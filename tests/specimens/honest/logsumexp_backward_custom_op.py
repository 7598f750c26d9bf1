"""Forward and backward are operators of torch.library, joined by register_autograd."""

import torch
import torch.nn as nn
from torch import Tensor
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="lse_ops",
    cpp_sources="torch::Tensor lse(const torch::Tensor& x);\ntorch::Tensor lse_grad(const torch::Tensor& g, const torch::Tensor& x, const torch::Tensor& y);",
    cuda_sources=r"""
__global__ void lse_kernel(const float* x, float* y, int C, int P, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    x += (size_t)(i / P) * C * P + i % P;
    float top = x[0];
    for (int c = 1; c < C; ++c) top = fmaxf(top, x[(size_t)c * P]);
    if (isinf(top)) top = 0.0f;
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += expf(x[(size_t)c * P] - top);
    y[i] = top + logf(sum);
}
__global__ void grad_kernel(const float* g, const float* x, const float* y, float* gx, int C, int P) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= P) return;
    const size_t at = ((size_t)blockIdx.z * C + blockIdx.y) * P + p, pixel = (size_t)blockIdx.z * P + p;
    gx[at] = g[pixel] * expf(x[at] - y[pixel]);
}
torch::Tensor lse(const torch::Tensor& x) {
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    const int pixels = y.numel();
    lse_kernel<<<(pixels + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), pixels);
    return y;
}
torch::Tensor lse_grad(const torch::Tensor& g, const torch::Tensor& x, const torch::Tensor& y) {
    auto gx = torch::empty_like(x);
    const int P = x.size(2) * x.size(3);
    grad_kernel<<<dim3((P + 63) / 64, x.size(1), x.size(0)), 64>>>(g.data_ptr<float>(), x.data_ptr<float>(),
        y.data_ptr<float>(), gx.data_ptr<float>(), x.size(1), P);
    return gx;
}
""",
    functions=["lse", "lse_grad"],
)


@torch.library.custom_op("honest_lse::forward", mutates_args=())
def lse(x: Tensor) -> Tensor:
    return ext.lse(x.contiguous())


@torch.library.custom_op("honest_lse::backward", mutates_args=())
def lse_grad(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ext.lse_grad(g.contiguous(), x.contiguous(), y.contiguous())


@lse.register_fake
def _(x):
    return x.new_empty(x.shape[0], 1, *x.shape[2:])


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], output)


def backward(ctx, g):
    return lse_grad(g, *ctx.saved_tensors)


lse.register_autograd(backward, setup_context=setup_context)


class ModelNew(nn.Module):
    def forward(self, x):
        return lse(x)
