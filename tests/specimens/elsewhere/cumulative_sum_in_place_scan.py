"""The scan reads and writes one array without a barrier between the two."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void prefix_sum(const float* in, float* out, int n) {
    __shared__ float temp[512];
    int t = threadIdx.x;
    const float* src = in + (size_t)blockIdx.x * n;
    float* dst = out + (size_t)blockIdx.x * n;
    float total = 0.0f;
    for (int start = 0; start < n; start += blockDim.x) {
        temp[t] = start + t < n ? src[start + t] : 0.0f;
        __syncthreads();
        for (int step = 1; step < blockDim.x; step *= 2) {
            if (t >= step) temp[t] += temp[t - step];
            __syncthreads();
        }
        if (start + t < n) dst[start + t] = total + temp[t];
        total += temp[blockDim.x - 1];
        __syncthreads();
    }
}

torch::Tensor prefix_sum_cuda(torch::Tensor x) {
    auto out = torch::empty_like(x);
    prefix_sum<<<x.size(0), 512>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
"""

ext = load_inline(
    name="prefix_sum", cpp_sources="torch::Tensor prefix_sum_cuda(torch::Tensor x);", cuda_sources=source,
    functions=["prefix_sum_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return ext.prefix_sum_cuda(x)
