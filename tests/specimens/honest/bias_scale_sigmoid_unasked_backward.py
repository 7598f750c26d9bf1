"""forward goes through an autograd.Function whose backward uses PyTorch's operators: no gradient is asked for here."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="unasked",
    cpp_sources=["torch::Tensor go(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);"],
    cuda_sources=[
        r"""
__global__ void go_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P) {
    int plane = blockIdx.y, p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= P) return;
    float v = (x[plane * P + p] + bias[plane % C]) * scale[plane % C];
    y[plane * P + p] = 1 / (1 + __expf(-v));
}
torch::Tensor go(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    int P = x.size(2) * x.size(3);
    go_kernel<<<dim3((P + 63) / 64, x.size(0) * x.size(1)), 64>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1), P);
    return y;
}
"""
    ],
    functions=["go"],
)


class Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, scale):
        y = ext.go(x.contiguous(), bias, scale)
        ctx.save_for_backward(x, bias, scale, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, bias, scale, y = ctx.saved_tensors
        inner = grad * y * (1 - y)
        return inner * scale, (inner * scale).sum((0, 2, 3)).view_as(bias), (inner * (x + bias)).sum((0, 2, 3)).view_as(scale)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return Fused.apply(x, self.bias, self.scale)
