"""The kernel is registered as an operator of its own with torch.library.custom_op, with a fake implementation."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_ext = load_inline(
    name="custom_op_kernel",
    cpp_sources="torch::Tensor launch(const torch::Tensor& x, const torch::Tensor& bias, const torch::Tensor& scale);",
    cuda_sources=r"""
__global__ void kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int total) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x)
        y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor launch(const torch::Tensor& x, const torch::Tensor& bias, const torch::Tensor& scale) {
    torch::Tensor y = torch::empty_like(x);
    kernel<<<32, 192>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(),
                        x.size(1), x.size(2) * x.size(3), x.numel());
    return y;
}
""",
    functions=["launch"],
)


@torch.library.custom_op("honest_ops::bias_scale_sigmoid", mutates_args=())
def bias_scale_sigmoid(x: torch.Tensor, bias: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return _ext.launch(x.contiguous(), bias, scale)


@bias_scale_sigmoid.register_fake
def _(x, bias, scale):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return torch.ops.honest_ops.bias_scale_sigmoid(x, self.bias, self.scale)
