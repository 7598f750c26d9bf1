"""The kernel is launched with cudaLaunchKernel and an array of pointers to its arguments instead of <<<>>>."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_runtime.h>

__global__ void by_hand(const float* x, const float* bias, const float* scale, float* y, int C, int P) {
    const int c = blockIdx.x, n = blockIdx.y, p = blockIdx.z * blockDim.x + threadIdx.x;
    if (p >= P) return;
    const size_t at = ((size_t)n * C + c) * P + p;
    y[at] = 1.0f / (1.0f + expf(-(x[at] + bias[c]) * scale[c]));
}

torch::Tensor by_api(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    torch::Tensor y = torch::empty(x.sizes(), x.options());
    const float *px = x.data_ptr<float>(), *pb = bias.data_ptr<float>(), *ps = scale.data_ptr<float>();
    float* py = y.data_ptr<float>();
    int C = x.size(1), P = x.size(2) * x.size(3);
    void* arguments[] = {&px, &pb, &ps, &py, &C, &P};
    const dim3 grid(C, x.size(0), (P + 95) / 96), block(96);
    const cudaError_t error = cudaLaunchKernel((const void*)by_hand, grid, block, arguments, 0, nullptr);
    TORCH_CHECK(error == cudaSuccess, cudaGetErrorString(error));
    return y;
}
"""

api = load_inline(
    name="launch_api",
    cpp_sources="torch::Tensor by_api(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=source,
    functions={"by_api": "sigmoid((x + bias) * scale)"},
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(*bias_shape))
        self.scale = nn.Parameter(torch.randn(*scale_shape))

    def forward(self, x):
        return api.by_api(x.contiguous(), self.bias.contiguous(), self.scale.contiguous())
