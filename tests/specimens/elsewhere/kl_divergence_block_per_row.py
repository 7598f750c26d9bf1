"""A block for each row writes a partial sum, which torch adds up."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

template <int THREADS>
__global__ void kl_kernel(const float* __restrict__ p, const float* __restrict__ t, float* __restrict__ rows, int n) {
    __shared__ float partial[THREADS];
    const size_t base = (size_t)blockIdx.x * n;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        const float target = t[base + i];
        if (target > 0.0f) sum += target * (logf(target) - logf(p[base + i]));
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
#pragma unroll
    for (int s = THREADS / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) rows[blockIdx.x] = partial[0];
}

torch::Tensor kl(torch::Tensor p, torch::Tensor t) {
    auto rows = torch::empty({p.size(0)}, p.options());
    kl_kernel<128><<<p.size(0), 128>>>(p.data_ptr<float>(), t.data_ptr<float>(), rows.data_ptr<float>(), p.size(1));
    return rows.sum() / p.size(0);
}
"""

ext = load_inline(
    name="kl", cpp_sources="torch::Tensor kl(torch::Tensor p, torch::Tensor t);", cuda_sources=source, functions=["kl"]
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.kl(predictions.contiguous(), targets.contiguous())
