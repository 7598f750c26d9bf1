"""An empty kernel warms the device up, and kernels that no thread has work in run before the real one."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="warm_up",
    cpp_sources="torch::Tensor warmed(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
__global__ void warm_up_kernel() {}
__global__ void clear_kernel(float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.0f;
}
__global__ void real_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor warmed(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel(), blocks = (n + 127) / 128;
    warm_up_kernel<<<1, 1>>>();
    clear_kernel<<<blocks, 128>>>(y.data_ptr<float>(), 0);
    clear_kernel<<<blocks, 128>>>(y.data_ptr<float>(), n);
    real_kernel<<<blocks, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                 y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
""",
    functions=["warmed"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return ext.warmed(x.contiguous(), self.bias, self.scale)
