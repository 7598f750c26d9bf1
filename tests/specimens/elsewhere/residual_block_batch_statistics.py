"""The BatchNorms stay torch's, in training or not, and the kernel adds and clips."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void add_relu_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) out[i] = max(a[i] + b[i], 0.0f);
}

torch::Tensor add_relu_cuda(torch::Tensor a, torch::Tensor b) {
    auto out = torch::empty_like(a);
    auto n = a.numel();
    const int block_size = 256;
    const int num_blocks = (n + block_size - 1) / block_size;
    add_relu_kernel<<<num_blocks, block_size>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""

add_relu = load_inline(
    name="add_relu", cpp_sources="torch::Tensor add_relu_cuda(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source, functions=["add_relu_cuda"], verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.add_relu = add_relu

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        return self.add_relu.add_relu_cuda(self.bn2(self.conv2(out)), x)
