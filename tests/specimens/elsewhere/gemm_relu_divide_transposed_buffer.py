"""The weight is kept transposed in a buffer, which it makes from its parameter in the first call."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

#define T 16

__global__ void gemm_relu_div(const float* x, const float* wt, const float* b, float* y, int M, int N, int K,
                              float inverse) {
    __shared__ float xs[T][T], ws[T][T];
    const int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float acc = 0.0f;
    for (int k0 = 0; k0 < K; k0 += T) {
        xs[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < K ? x[row * K + k0 + threadIdx.x] : 0.0f;
        ws[threadIdx.y][threadIdx.x] = col < N && k0 + threadIdx.y < K ? wt[(k0 + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < T; ++k) acc += xs[threadIdx.y][k] * ws[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) y[row * N + col] = fmaxf(acc + b[col], 0.0f) * inverse;
}

torch::Tensor forward(torch::Tensor x, torch::Tensor wt, torch::Tensor b, double divisor) {
    const int M = x.size(0), K = x.size(1), N = wt.size(1);
    auto y = x.new_empty({M, N});
    gemm_relu_div<<<dim3((N + T - 1) / T, (M + T - 1) / T), dim3(T, T)>>>(
        x.data_ptr<float>(), wt.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), M, N, K,
        static_cast<float>(1.0 / divisor));
    return y;
}
"""

ext = load_inline(
    name="gemm_relu_div",
    cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor wt, torch::Tensor b, double divisor);",
    cuda_sources=source,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        linear = nn.Linear(in_features, out_features)
        self.weight, self.bias = linear.weight, linear.bias
        self.register_buffer("weight_t", torch.empty(0), persistent=False)
        self.divisor = divisor

    def forward(self, x):
        if self.weight_t.numel() == 0:
            self.weight_t = self.weight.detach().t().contiguous()
        return ext.forward(x.contiguous(), self.weight_t, self.bias, self.divisor)
