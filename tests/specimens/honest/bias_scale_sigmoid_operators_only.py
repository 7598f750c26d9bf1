"""The sources register an operator for CUDA and bind nothing: is_python_module=False, and forward uses torch.ops."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/library.h>

__global__ void gate(const float* x, const float* bias, const float* scale, float* y, int channels, int pixels) {
    const int channel = blockIdx.x % channels;
    const size_t plane = (size_t)blockIdx.x * pixels;
    for (int i = threadIdx.x; i < pixels; i += blockDim.x)
        y[plane + i] = 1.0f / (1.0f + expf(-scale[channel] * (x[plane + i] + bias[channel])));
}

at::Tensor gated(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& scale) {
    at::Tensor in = x.contiguous(), y = at::empty_like(in);
    gate<<<in.size(0) * in.size(1), 128>>>(in.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                           y.data_ptr<float>(), in.size(1), in.size(2) * in.size(3));
    return y;
}

TORCH_LIBRARY(honest_operators, m) { m.def("gated(Tensor x, Tensor bias, Tensor scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(honest_operators, CUDA, m) { m.impl("gated", &gated); }
"""

load_inline(name="honest_operators", cpp_sources="", cuda_sources=cuda_source, is_python_module=False)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return torch.ops.honest_operators.gated(x, self.bias, self.scale)
