"""Bias and scale are copied to constant memory before each launch."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int MOST = 4096;
__constant__ float both[2 * MOST];

__global__ void constants(const float* x, float* y, int C, int P) {
    const int plane = blockIdx.x, c = plane % C;
    for (int p = threadIdx.x; p < P; p += blockDim.x)
        y[(size_t)plane * P + p] = 1.0f / (1.0f + expf(-(x[(size_t)plane * P + p] + both[c]) * both[MOST + c]));
}

torch::Tensor with_constants(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    const int C = x.size(1);
    TORCH_CHECK(C <= MOST, "at most ", MOST, " channels");
    auto stream = c10::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(cudaMemcpyToSymbolAsync(both, bias.data_ptr<float>(), C * sizeof(float), 0,
                                           cudaMemcpyDeviceToDevice, stream));
    C10_CUDA_CHECK(cudaMemcpyToSymbolAsync(both, scale.data_ptr<float>(), C * sizeof(float), MOST * sizeof(float),
                                           cudaMemcpyDeviceToDevice, stream));
    auto y = at::empty_like(x);
    constants<<<x.size(0) * C, 64, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), C, x.size(2) * x.size(3));
    C10_CUDA_CHECK(cudaGetLastError());
    return y;
}
"""

constants = load_inline(
    name="constants",
    cpp_sources="torch::Tensor with_constants(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=source,
    functions=["with_constants"],
    with_cuda=True,
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return constants.with_constants(x.contiguous(), self.bias, self.scale)
