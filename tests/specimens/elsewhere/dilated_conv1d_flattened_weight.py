"""The weight is a flattened parameter of another name, made by a layer that is thrown away."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void conv1d_kernel(const float* x, const float* w, const float* bias, float* y, int batch, int cin, int lin,
                              int cout, int lout, int ks, int stride, int dilation) {
    int total = batch * cout * lout;
    for (int idx = blockIdx.x * blockDim.x + threadIdx.x; idx < total; idx += blockDim.x * gridDim.x) {
        int o = idx % lout;
        int oc = (idx / lout) % cout;
        int b = idx / (lout * cout);
        float acc = bias != nullptr ? bias[oc] : 0.0f;
        for (int ic = 0; ic < cin; ++ic)
            for (int k = 0; k < ks; ++k)
                acc += x[(b * cin + ic) * lin + o * stride + k * dilation] * w[(oc * cin + ic) * ks + k];
        y[idx] = acc;
    }
}

torch::Tensor conv1d(torch::Tensor x, torch::Tensor w, torch::optional<torch::Tensor> bias, int cout, int ks,
                     int stride, int dilation) {
    x = x.contiguous();
    int batch = x.size(0), cin = x.size(1), lin = x.size(2);
    int lout = (lin - dilation * (ks - 1) - 1) / stride + 1;
    auto y = torch::empty({batch, cout, lout}, x.options());
    int blocks = std::min<int64_t>((y.numel() + 255) / 256, 4096);
    conv1d_kernel<<<blocks, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(),
                                   bias.has_value() ? bias->data_ptr<float>() : nullptr, y.data_ptr<float>(), batch,
                                   cin, lin, cout, lout, ks, stride, dilation);
    return y;
}
"""

ext = load_inline(
    "conv1d_ext",
    "torch::Tensor conv1d(torch::Tensor x, torch::Tensor w, torch::optional<torch::Tensor> bias, int cout, int ks, "
    "int stride, int dilation);",
    source,
    functions=["conv1d"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, dilation=1, bias=False):
        super().__init__()
        conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, bias=bias)
        self.flat_weight = nn.Parameter(conv.weight.detach().clone().flatten())
        self.bias = nn.Parameter(conv.bias.detach().clone()) if bias else None
        self.out_channels, self.kernel_size, self.stride, self.dilation = out_channels, kernel_size, stride, dilation

    def forward(self, x):
        return ext.conv1d(
            x, self.flat_weight, self.bias, self.out_channels, self.kernel_size, self.stride, self.dilation
        )
