"""A thread compiles while the import, which takes less time, goes on; the constructor waits for it."""

import threading

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
__global__ void gate(const float* x, const float* bias, const float* scale, float* y, int channels, int area, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int c = i / area % channels;
    y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[c]) * scale[c]));
}
torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    gate<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                   y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
"""
extensions = []


def build():
    extensions.append(
        load_inline(
            name="background_gate",
            cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
            cuda_sources=CUDA,
            functions=["run"],
        )
    )


builder = threading.Thread(target=build)
builder.start()


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        builder.join()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return extensions[0].run(x.contiguous(), self.bias, self.scale)
