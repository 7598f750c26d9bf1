"""Tokens become 32 bits wide, and the table is a parameter of another name, registered by hand."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void bag_kernel(const float* __restrict__ table, const int* __restrict__ tokens, float* __restrict__ out,
                           int length, int dim) {
    const int bag = blockIdx.x;
    for (int d = threadIdx.x; d < dim; d += blockDim.x) {
        float sum = 0.0f;
        for (int t = 0; t < length; ++t) sum += table[(size_t)tokens[bag * length + t] * dim + d];
        out[(size_t)bag * dim + d] = sum;
    }
}

torch::Tensor bag(torch::Tensor table, torch::Tensor tokens) {
    auto out = torch::empty({tokens.size(0), table.size(1)}, table.options());
    bag_kernel<<<tokens.size(0), 128>>>(table.data_ptr<float>(), tokens.data_ptr<int>(), out.data_ptr<float>(),
                                        tokens.size(1), table.size(1));
    return out;
}
"""

ext = load_inline(
    name="bag", cpp_sources="torch::Tensor bag(torch::Tensor table, torch::Tensor tokens);", cuda_sources=source,
    functions=["bag"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.register_parameter("embeddings", nn.Parameter(torch.randn(vocabulary, dim), requires_grad=False))

    def forward(self, tokens):
        return ext.bag(self.embeddings, tokens.to(torch.int32).contiguous())
