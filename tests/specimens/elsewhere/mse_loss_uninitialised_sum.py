"""The sum that the blocks add to comes from torch::empty."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void mse_kernel(const float* predictions, const float* targets, float* loss, int n) {
    __shared__ float cache[256];
    int tid = threadIdx.x;
    float acc = 0.0f;
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += blockDim.x * gridDim.x) {
        float d = predictions[i] - targets[i];
        acc += d * d;
    }
    cache[tid] = acc;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) cache[tid] += cache[tid + s];
        __syncthreads();
    }
    if (tid == 0) atomicAdd(loss, cache[0]);
}

torch::Tensor mse_cuda(torch::Tensor predictions, torch::Tensor targets) {
    int n = predictions.numel();
    auto loss = torch::empty({1}, predictions.options());
    int blocks = std::min((n + 255) / 256, 1024);
    mse_kernel<<<blocks, 256>>>(predictions.data_ptr<float>(), targets.data_ptr<float>(), loss.data_ptr<float>(), n);
    return loss.squeeze() / n;
}
"""

ext = load_inline(
    name="mse_loss",
    cpp_sources="torch::Tensor mse_cuda(torch::Tensor predictions, torch::Tensor targets);",
    cuda_sources=source,
    functions=["mse_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        return ext.mse_cuda(predictions, targets)
