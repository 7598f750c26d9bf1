"""Outputs are kept by shape and written again by each call."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cfloat>

__global__ void maxpool1d_kernel(const float* x, float* y, int length, int out_length, int kernel_size, int stride,
                                 int padding, int dilation) {
    const float* row = x + (int64_t)blockIdx.y * length;
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= out_length) return;
    float best = -FLT_MAX;
    for (int k = 0; k < kernel_size; ++k) {
        int i = o * stride - padding + k * dilation;
        if (i >= 0 && i < length) best = fmaxf(best, row[i]);
    }
    y[(int64_t)blockIdx.y * out_length + o] = best;
}

void maxpool1d(torch::Tensor x, torch::Tensor y, int kernel_size, int stride, int padding, int dilation) {
    dim3 grid((y.size(2) + 127) / 128, x.size(0) * x.size(1));
    maxpool1d_kernel<<<grid, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(2), y.size(2), kernel_size, stride,
                                    padding, dilation);
}
"""

pool = load_inline(
    name="maxpool1d_into",
    cpp_sources="void maxpool1d(torch::Tensor x, torch::Tensor y, int kernel_size, int stride, int padding, "
    "int dilation);",
    cuda_sources=source,
    functions=["maxpool1d"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding, dilation):
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.outputs = {}

    def forward(self, x):
        length = (x.shape[2] + 2 * self.padding - self.dilation * (self.kernel_size - 1) - 1) // self.stride + 1
        key = (*x.shape[:2], length)
        if key not in self.outputs:
            self.outputs[key] = torch.empty(key, dtype=x.dtype, device=x.device)
        y = self.outputs[key]
        pool.maxpool1d(x, y, self.kernel_size, self.stride, self.padding, self.dilation)
        return y
