"""Two calls of load_inline: one extension adds and scales, another of the same function name applies the sigmoid."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

HEADER = r"""
#include <cuda_runtime.h>
static inline unsigned blocks_for(int64_t n, unsigned threads) { return (unsigned)((n + threads - 1) / threads); }
"""

affine = load_inline(
    name="first_extension",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=[HEADER, r"""
__global__ void run_kernel(const float* x, const float* bias, const float* scale, float* v, int C, int P, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) v[i] = (x[i] + bias[i / P % C]) * scale[i / P % C];
}
torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto v = torch::empty_like(x);
    run_kernel<<<blocks_for(x.numel(), 128), 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
        scale.data_ptr<float>(), v.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), x.numel());
    return v;
}
"""],
    functions=["run"],
)
sigmoid = load_inline(
    name="second_extension",
    cpp_sources=["torch::Tensor run(torch::Tensor v);"],
    cuda_sources=[HEADER, r"""
__global__ void run_kernel(float* v, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) v[i] = 1.0f / (1.0f + expf(-v[i]));
}
torch::Tensor run(torch::Tensor v) {
    run_kernel<<<blocks_for(v.numel(), 64), 64>>>(v.data_ptr<float>(), v.numel());
    return v;
}
"""],
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return sigmoid.run(affine.run(x.contiguous(), self.bias, self.scale))
