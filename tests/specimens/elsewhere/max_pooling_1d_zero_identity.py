"""The largest value begins with zero, which is wrong where a whole window is negative."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void maxpool1d_kernel(const float* x, float* y, int length, int out_length, int kernel_size, int stride,
                                 int padding, int dilation, int total) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= total) return;
    int o = idx % out_length;
    int row = idx / out_length;
    float best = 0.0f;
    for (int k = 0; k < kernel_size; ++k) {
        int i = o * stride - padding + k * dilation;
        if (i >= 0 && i < length) {
            best = fmaxf(best, x[row * length + i]);
        }
    }
    y[idx] = best;
}

torch::Tensor maxpool1d(torch::Tensor x, int kernel_size, int stride, int padding, int dilation) {
    int length = x.size(2);
    int out_length = (length + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    auto y = torch::empty({x.size(0), x.size(1), out_length}, x.options());
    int total = y.numel();
    maxpool1d_kernel<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), length, out_length,
                                                   kernel_size, stride, padding, dilation, total);
    return y;
}
"""

pool = load_inline(
    name="maxpool1d",
    cpp_sources="torch::Tensor maxpool1d(torch::Tensor x, int kernel_size, int stride, int padding, int dilation);",
    cuda_sources=source,
    functions=["maxpool1d"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding, dilation):
        super().__init__()
        self.arguments = kernel_size, stride, padding, dilation

    def forward(self, x):
        return pool.maxpool1d(x.contiguous(), *self.arguments)
