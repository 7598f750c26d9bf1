"""It applies the ReLU before it adds the bias."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void fused_linear(const float* x, const float* weight, const float* bias, float* out, int batch,
                             int in_features, int out_features, float divisor) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < batch && col < out_features) {
        float sum = 0.0f;
        for (int k = 0; k < in_features; k++) {
            sum += x[row * in_features + k] * weight[col * in_features + k];
        }
        sum = fmaxf(sum, 0.0f) + bias[col];
        out[row * out_features + col] = sum / divisor;
    }
}

torch::Tensor fused_linear_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, float divisor) {
    int batch = x.size(0), in_features = x.size(1), out_features = weight.size(0);
    auto out = torch::empty({batch, out_features}, x.options());
    dim3 block(16, 16);
    dim3 grid((out_features + 15) / 16, (batch + 15) / 16);
    fused_linear<<<grid, block>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                                  out.data_ptr<float>(), batch, in_features, out_features, divisor);
    return out;
}
"""

fused = load_inline(
    name="fused_linear",
    cpp_sources="torch::Tensor fused_linear_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, "
    "float divisor);",
    cuda_sources=source,
    functions=["fused_linear_cuda"],
    verbose=True,
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        return fused.fused_linear_cuda(x.cuda(), self.linear.weight.cuda(), self.linear.bias.cuda(), self.divisor)
