"""A thread for each sample, which reads its class as a long, and torch's mean of their losses."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void cross_entropy_kernel(const float* logits, const long* targets, float* losses, int n, int classes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float* row = logits + i * classes;
        float peak = row[0];
        for (int c = 1; c < classes; ++c) peak = fmaxf(peak, row[c]);
        float sum = 0.0f;
        for (int c = 0; c < classes; ++c) sum += expf(row[c] - peak);
        losses[i] = logf(sum) + peak - row[targets[i]];
    }
}

torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets) {
    TORCH_CHECK(targets.scalar_type() == torch::kInt64, "targets must be int64");
    const int n = logits.size(0), classes = logits.size(1);
    auto losses = torch::empty({n}, logits.options());
    cross_entropy_kernel<<<(n + 255) / 256, 256>>>(logits.data_ptr<float>(), targets.data_ptr<long>(),
                                                   losses.data_ptr<float>(), n, classes);
    return losses.mean();
}
"""

ext = load_inline(
    name="cross_entropy",
    cpp_sources="torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets);",
    cuda_sources=source,
    functions=["cross_entropy"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.cross_entropy(predictions, targets)
