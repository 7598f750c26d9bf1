"""ModelNew is a function that picks one of two classes, whose forward is assigned and not defined in its body."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

picked = load_inline(
    name="picked",
    cpp_sources="torch::Tensor picked(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
__global__ void picked_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor picked(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel(), threads = x.size(1) < 8 ? 32 : 256;
    picked_kernel<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
        scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
""",
    functions=["picked"],
)


class Base(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))


def run(self, x):
    return picked.picked(x.contiguous(), self.bias, self.scale)


Base.forward = run


class Few(Base):
    """For few channels."""


def ModelNew(bias_shape, scale_shape):
    return (Few if bias_shape[0] < 8 else Base)(bias_shape, scale_shape)
