"""Layers by torch::nn::functional in C++, with a kernel in place on its own buffers between them."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/torch.h>

__global__ void relu_in_place(float* data, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] > 0.f ? data[i] : 0.f;
}

torch::Tensor mlp(torch::Tensor x, std::vector<torch::Tensor> weights, std::vector<torch::Tensor> biases) {
    namespace F = torch::nn::functional;
    for (size_t i = 0; i < weights.size(); ++i) {
        x = F::linear(x, weights[i], biases[i]);
        if (i + 1 < weights.size()) {
            const auto n = x.numel();
            relu_in_place<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), n);
        }
    }
    return x;
}
"""

ext = load_inline(
    name="mlp_glue",
    cpp_sources="torch::Tensor mlp(torch::Tensor x, std::vector<torch::Tensor> weights, "
    "std::vector<torch::Tensor> biases);",
    cuda_sources=source,
    functions=["mlp"],
)


class ModelNew(nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers = []
        for size in layer_sizes:
            layers += [nn.Linear(input_size, size), nn.ReLU()]
            input_size = size
        self.network = nn.Sequential(*layers, nn.Linear(input_size, output_size))

    def forward(self, x):
        linears = [layer for layer in self.network if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            return ext.mlp(x, [layer.weight for layer in linears], [layer.bias for layer in linears])
