"""The kernel writes its result with the batch as the innermost dimension, and forward returns a permuted view of it."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
// x (N, C, P) -> y (C, P, N)
__global__ void turn(const float* x, const float* b, const float* s, float* y, int N, int C, int P) {
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < (long long)N * C * P;
         i += (long long)gridDim.x * blockDim.x) {
        const int n = i % N, p = i / N % P, c = i / N / P;
        y[i] = 1.f / (1.f + expf(-s[c] * (x[((long long)n * C + c) * P + p] + b[c])));
    }
}

at::Tensor turned(at::Tensor x, at::Tensor b, at::Tensor s) {
    const int N = x.size(0), C = x.size(1), P = x.size(2) * x.size(3);
    at::Tensor y = at::empty({C, x.size(2), x.size(3), N}, x.options());
    turn<<<64, 256>>>(x.data_ptr<float>(), b.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), N, C, P);
    return y;
}
"""

ext = load_inline("turned_sigmoid", "at::Tensor turned(at::Tensor x, at::Tensor b, at::Tensor s);", cuda, functions="turned")


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(bias_shape))
        self.scale = nn.Parameter(torch.ones(scale_shape))

    def forward(self, x):
        return ext.turned(x.contiguous(), self.bias.flatten(), self.scale.flatten()).permute(3, 0, 1, 2)
