"""The result is memory from cudaMalloc that torch::from_blob wraps, with a deleter that frees it."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="from_blob",
    cpp_sources="torch::Tensor own_memory(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
__global__ void own_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor own_memory(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    float* y = nullptr;
    const int n = x.numel();
    TORCH_CHECK(cudaMalloc(&y, n * sizeof(float)) == cudaSuccess, "no memory");
    own_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y,
                                         x.size(1), x.size(2) * x.size(3), n);
    return torch::from_blob(y, x.sizes(), [](void* memory) { cudaFree(memory); }, x.options());
}
""",
    functions=["own_memory"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return ext.own_memory(x.contiguous(), self.bias, self.scale)
