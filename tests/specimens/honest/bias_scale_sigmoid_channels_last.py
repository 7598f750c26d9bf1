"""The kernel works on channels_last memory, and the result keeps that layout."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void nhwc(const float* x, const float* bias, const float* scale, float* y, long long total, int channels) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int c = i % channels;
    y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[c]) * scale[c]));
}

torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    TORCH_CHECK(x.is_contiguous(at::MemoryFormat::ChannelsLast), "x must be channels_last");
    auto y = torch::empty_like(x, x.options(), at::MemoryFormat::ChannelsLast);
    const long long total = x.numel();
    nhwc<<<(total + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                       y.data_ptr<float>(), total, (int)x.size(1));
    return y;
}
"""

module = load_inline(
    name="nhwc_sigmoid",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.empty(bias_shape))
        self.scale = nn.Parameter(torch.empty(scale_shape))

    def forward(self, x):
        return module.run(x.contiguous(memory_format=torch.channels_last), self.bias, self.scale)
