"""The BatchNorms' running values are folded, for inference alone, into a kernel after each convolution."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void affine_add_relu(const float* x, const float* scale, const float* shift, const float* residual, float* y,
                                int channels, int spatial, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = (i / spatial) % channels;
    float v = fmaf(x[i], scale[c], shift[c]);
    if (residual) v += residual[i];
    y[i] = fmaxf(v, 0.0f);
}

torch::Tensor fused(torch::Tensor x, torch::Tensor scale, torch::Tensor shift, c10::optional<torch::Tensor> residual) {
    auto y = torch::empty_like(x);
    const int total = x.numel();
    affine_add_relu<<<(total + 255) / 256, 256>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), shift.data_ptr<float>(),
        residual.has_value() ? residual.value().data_ptr<float>() : nullptr, y.data_ptr<float>(), x.size(1),
        x.size(2) * x.size(3), total);
    return y;
}
"""

ext = load_inline(
    name="affine_add_relu",
    cpp_sources="torch::Tensor fused(torch::Tensor x, torch::Tensor scale, torch::Tensor shift, "
    "c10::optional<torch::Tensor> residual);",
    cuda_sources=source,
    functions=["fused"],
)


def fold(bn):
    scale = bn.weight * torch.rsqrt(bn.running_var + bn.eps)
    return scale.contiguous(), (bn.bias - bn.running_mean * scale).contiguous()


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    @torch.inference_mode()
    def forward(self, x):
        out = ext.fused(self.conv1(x), *fold(self.bn1), None)
        return ext.fused(self.conv2(out), *fold(self.bn2), x)
