"""A scan of Hillis and Steele in each tile of a row, with the sum carried from tile to tile."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void cumsum_kernel(const float* x, float* y, int n) {
    __shared__ float buffers[2][256];
    const int tid = threadIdx.x;
    x += (size_t)blockIdx.x * n;
    y += (size_t)blockIdx.x * n;
    float carry = 0.f;
    for (int base = 0; base < n; base += 256) {
        int in = 0;
        buffers[in][tid] = base + tid < n ? x[base + tid] : 0.f;
        __syncthreads();
        for (int offset = 1; offset < 256; offset <<= 1) {
            const int out = 1 - in;
            buffers[out][tid] = buffers[in][tid] + (tid >= offset ? buffers[in][tid - offset] : 0.f);
            in = out;
            __syncthreads();
        }
        if (base + tid < n) y[base + tid] = carry + buffers[in][tid];
        carry += buffers[in][255];
        __syncthreads();
    }
}

torch::Tensor cumsum(torch::Tensor x) {
    auto y = torch::empty_like(x);
    cumsum_kernel<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

ext = load_inline(
    name="cumsum_scan", cpp_sources="torch::Tensor cumsum(torch::Tensor x);", cuda_sources=source, functions=["cumsum"]
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        moved = x.movedim(self.dim, -1)
        return ext.cumsum(moved.reshape(-1, moved.shape[-1]).contiguous()).view(moved.shape).movedim(-1, self.dim)
