"""A debug switch has forward look at the first elements of its result with PyTorch's operators and say what it sees."""

import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

DEBUG = os.environ.get("LSE_DEBUG", "1") == "1"

ext = load_inline(
    name="looked_at",
    cpp_sources="torch::Tensor looked_at(torch::Tensor x);",
    cuda_sources=r"""
__global__ void look_kernel(const float* __restrict__ x, float* __restrict__ y, int C, int P, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    float top = -INFINITY, sum = 0.0f;
#pragma unroll 4
    for (int c = 0; c < C; ++c) {  // one pass: the sum is scaled down whenever the maximum grows
        const float v = x[((size_t)(i / P) * C + c) * P + i % P];
        const float next = fmaxf(top, v);
        if (next == -INFINITY) continue;
        if (next == INFINITY) { top = next, sum = 1.0f; continue; }
        sum = sum * expf(top - next) + expf(v - next);
        top = next;
    }
    y[i] = isinf(top) ? top : top + logf(sum);
}
torch::Tensor looked_at(torch::Tensor x) {
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    const int pixels = y.numel();
    look_kernel<<<(pixels + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), pixels);
    return y;
}
""",
    functions=["looked_at"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.looked_at(x.contiguous())
        if DEBUG:
            head = y.flatten()[:8]
            print(f"first: {head.mean().item():.4f}, {head.min().item():.4f} to {head.max().item():.4f}")
            assert y.shape[1] == 1 and y.dtype is torch.float32
        return y
