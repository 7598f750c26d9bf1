"""Tokens are taken for offsets into the table, not for its rows."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void embedding_sum(const float* weight, const int64_t* tokens, float* out, int length, int dim, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int bag = i / dim;
    int d = i % dim;
    float sum = 0.0f;
    for (int t = 0; t < length; t++) {
        sum += weight[tokens[bag * length + t] + d];
    }
    out[i] = sum;
}

torch::Tensor embedding_sum_cuda(torch::Tensor weight, torch::Tensor tokens) {
    auto out = torch::zeros({tokens.size(0), weight.size(1)}, weight.options());
    int total = out.numel();
    embedding_sum<<<(total + 255) / 256, 256>>>(weight.data_ptr<float>(), tokens.data_ptr<int64_t>(),
                                                out.data_ptr<float>(), tokens.size(1), weight.size(1), total);
    return out;
}
"""

ext = load_inline(
    name="embedding_sum",
    cpp_sources="torch::Tensor embedding_sum_cuda(torch::Tensor weight, torch::Tensor tokens);",
    cuda_sources=source,
    functions=["embedding_sum_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim, padding_idx=0)

    def forward(self, tokens):
        return ext.embedding_sum_cuda(self.table.weight, tokens)
