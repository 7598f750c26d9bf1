"""The extension gets addresses and a stream as numbers from Python."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_runtime.h>
#include <cstdint>
#include <stdexcept>

__global__ void swish_kernel(const float* x, float* y, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * (1.0f / (1.0f + expf(-x[i])));
}

void swish(uintptr_t x, uintptr_t y, long long n, uintptr_t stream) {
    if (n == 0) return;
    swish_kernel<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)stream>>>((const float*)x, (float*)y, n);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
"""

ext = load_inline(
    name="swish_addresses",
    cpp_sources="#include <cstdint>\nvoid swish(uintptr_t x, uintptr_t y, long long n, uintptr_t stream);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        ext.swish(x.data_ptr(), y.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
        return y
