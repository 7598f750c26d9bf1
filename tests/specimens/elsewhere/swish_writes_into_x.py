"""It writes the result into its input and returns that."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void swish_kernel(float* x, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        x[i] = v / (1.0f + expf(-v));
    }
}

torch::Tensor swish_(torch::Tensor x) {
    int64_t n = x.numel();
    swish_kernel<<<(n + 511) / 512, 512>>>(x.data_ptr<float>(), n);
    return x;
}
"""

ext = load_inline(
    name="swish_inplace", cpp_sources="torch::Tensor swish_(torch::Tensor x);", cuda_sources=source,
    functions=["swish_"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish_(x)
