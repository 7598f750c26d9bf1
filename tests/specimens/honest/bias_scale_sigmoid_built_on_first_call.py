"""The kernel is built in the first call of forward, behind functools.cache, under a name with a random suffix."""

import functools
import uuid

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor late(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);"
CUDA = r"""
__global__ void late_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor late(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    late_kernel<<<16, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(),
                             x.size(1), x.size(2) * x.size(3), x.numel());
    return y;
}
"""


@functools.cache
def kernels():
    return load_inline(name=f"late_{uuid.uuid4().hex}", cpp_sources=CPP, cuda_sources=CUDA, functions=["late"])


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return kernels().late(x.contiguous(), self.bias, self.scale)
