"""An autograd.Function whose backward raises: the module is for inference, and says so to whoever asks for a gradient."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="inference_only",
    cpp_sources="torch::Tensor infer(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
__global__ void infer_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor infer(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    infer_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                           y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
""",
    functions=["infer"],
)


class Inference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, scale):
        return ext.infer(x.contiguous(), bias, scale)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("this module is for inference")


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return Inference.apply(x, self.bias, self.scale)
