"""A grid-stride loop, timed by CUDA events in every call."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void gelu_kernel(const float* __restrict__ x, float* __restrict__ y, size_t n) {
    const float c = 0.7978845608028654f;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)blockDim.x * gridDim.x) {
        const float v = x[i];
        y[i] = 0.5f * v * (1.0f + tanhf(c * (v + 0.044715f * v * v * v)));
    }
}

torch::Tensor gelu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int sms = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
    gelu_kernel<<<sms * 8, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                                       x.numel());
    return y;
}
"""

ext = load_inline(
    name="gelu_tanh", cpp_sources="torch::Tensor gelu(torch::Tensor x);", cuda_sources=source, functions=["gelu"]
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.elapsed = 0.0

    def forward(self, x):
        torch.cuda.synchronize()
        self.start.record()
        y = ext.gelu(x)
        self.end.record()
        torch.cuda.synchronize()
        self.elapsed += self.start.elapsed_time(self.end)
        return y
