"""Hooks run before and after forward, one of which makes the input contiguous, and __call__ is overridden."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="hooked",
    cpp_sources="void hooked(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor out);",
    cuda_sources=r"""
__global__ void hooked_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
void hooked(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor out) {
    const int n = x.numel();
    hooked_kernel<<<(n + 191) / 192, 192>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                            out.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
}
""",
    functions=["hooked"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.calls = 0
        self.register_forward_pre_hook(lambda module, inputs: tuple(x.contiguous() for x in inputs))
        self.register_forward_hook(lambda module, inputs, output: output["y"])
        self.eval()

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return super().__call__(*args, **kwargs)

    def train(self, mode: bool = True):
        return super().train(False)  # this class is for inference alone

    def forward(self, x):
        y = x.new_empty(x.shape)
        ext.hooked(x, self.bias, self.scale, y)
        return {"y": y}
