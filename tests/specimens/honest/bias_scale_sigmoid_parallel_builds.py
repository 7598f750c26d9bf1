"""A thread pool builds two extensions at the same time, and a lock guards a cache that forward reads."""

import concurrent.futures
import threading

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void NAME_kernel(const float* x, const float* p, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = EXPRESSION;
}
torch::Tensor NAME(torch::Tensor x, torch::Tensor p) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    NAME_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), p.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
                                          x.size(2) * x.size(3), n);
    return y;
}
"""
EXPRESSIONS = {"shifted": "x[i] + p[i / P % C]", "gated": "1.0f / (1.0f + expf(-x[i] * p[i / P % C]))"}


def build(name):
    return load_inline(
        name=f"parallel_{name}",
        cpp_sources=f"torch::Tensor {name}(torch::Tensor x, torch::Tensor p);",
        cuda_sources=SOURCE.replace("NAME", name).replace("EXPRESSION", EXPRESSIONS[name]),
        functions=[name],
    )


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    built = dict(zip(EXPRESSIONS, pool.map(build, EXPRESSIONS)))
lock = threading.Lock()


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        with lock:
            shifted, gated = built["shifted"].shifted, built["gated"].gated
        return gated(shifted(x.contiguous(), self.bias), self.scale)
