"""__init__ builds the kernel, each time it is called, from a source into which it writes the number of channels."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

TEMPLATE = r"""
#define CHANNELS {channels}

__global__ void fixed_channels(const float* x, const float* bias, const float* scale, float* y, int P, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int c = i / P % CHANNELS;
    y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[c]) * scale[c]));
}}

torch::Tensor fixed(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {{
    TORCH_CHECK(x.size(1) == CHANNELS);
    auto y = torch::empty_like(x);
    const int n = x.numel();
    fixed_channels<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                             y.data_ptr<float>(), x.size(2) * x.size(3), n);
    return y;
}}
"""


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.module = load_inline(
            name=f"fixed_{bias_shape[0]}",
            cpp_sources="torch::Tensor fixed(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
            cuda_sources=TEMPLATE.format(channels=bias_shape[0]),
            functions=["fixed"],
        )

    def forward(self, x):
        return self.module.fixed(x.contiguous(), self.bias, self.scale)
