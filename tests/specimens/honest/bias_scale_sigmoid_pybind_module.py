"""The CUDA source binds its functions itself with PYBIND11_MODULE, so functions= is left out and cpp_sources is empty."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>

__global__ void bound_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}

static torch::Tensor bound(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, int threads) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    bound_kernel<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
        scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "sigmoid((x + bias) * scale)";
    m.def("bound", &bound, "one thread per element", py::arg("x"), py::arg("bias"), py::arg("scale"),
          py::arg("threads") = 256);
    m.attr("version") = 3;
}
"""

ext = load_inline(name="bound_by_hand", cpp_sources="", cuda_sources=cuda_source)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return ext.bound(x=x.contiguous(), bias=self.bias, scale=self.scale, threads=128)
