"""The result begins as an empty tensor, is resized, is written by an out-variant and is viewed in its final shape."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="out_variant",
    cpp_sources="torch::Tensor& sigmoid_out(torch::Tensor& out, const torch::Tensor& x, const torch::Tensor& bias, const torch::Tensor& scale);",
    cuda_sources=r"""
__global__ void out_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor& sigmoid_out(torch::Tensor& out, const torch::Tensor& x, const torch::Tensor& bias,
                           const torch::Tensor& scale) {
    const int n = x.numel();
    out.resize_({n});
    out_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                         out.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return out;
}
""",
    functions=["sigmoid_out"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        out = torch.empty(0, dtype=x.dtype, device=x.device)
        return ext.sigmoid_out(out, x.contiguous(), self.bias.squeeze(), self.scale.squeeze()).view(x.shape)
