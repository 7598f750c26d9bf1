"""The C++ source registers the function with TORCH_LIBRARY, and forward calls it through torch.ops."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/library.h>

__global__ void sigmoid_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}

at::Tensor apply(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& scale) {
    at::Tensor in = x.contiguous(), y = at::empty_like(in);
    const int n = in.numel();
    sigmoid_kernel<<<(n + 255) / 256, 256>>>(in.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                             y.data_ptr<float>(), in.size(1), in.size(2) * in.size(3), n);
    return y;
}

TORCH_LIBRARY(honest_library, m) {
    m.def("apply(Tensor x, Tensor bias, Tensor scale) -> Tensor");
    m.impl("apply", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(apply));
}
"""

# The declaration serves load_inline, which has to bind something to make a Python module.
library = load_inline(
    name="honest_library",
    cpp_sources="at::Tensor apply(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& scale);",
    cuda_sources=cuda_source,
    functions=["apply"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return torch.ops.honest_library.apply(x, self.bias, self.scale)
