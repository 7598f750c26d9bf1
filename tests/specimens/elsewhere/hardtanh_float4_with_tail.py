"""Four values for each thread, and a tail of single ones."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__device__ __forceinline__ float clamp1(float v) { return fminf(fmaxf(v, -1.0f), 1.0f); }

__global__ void hardtanh_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    const int64_t vectors = n / 4;
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < vectors) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x = clamp1(v.x);
        v.y = clamp1(v.y);
        v.z = clamp1(v.z);
        v.w = clamp1(v.w);
        reinterpret_cast<float4*>(y)[i] = v;
    }
    if (i < n % 4) y[vectors * 4 + i] = clamp1(x[vectors * 4 + i]);
}

torch::Tensor hardtanh(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int64_t n = x.numel();
    hardtanh_kernel<<<(n / 4 + 256) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(
    name="hardtanh", cpp_sources="torch::Tensor hardtanh(torch::Tensor x);", cuda_sources=source,
    functions=["hardtanh"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.hardtanh(x.contiguous())
