"""Blocks share the inner dimension and add their parts with atomicAdd into a zeroed result: rounding differs by run."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="split_k",
    cpp_sources="torch::Tensor split_k(torch::Tensor a, torch::Tensor b);",
    cuda_sources=r"""
constexpr int PARTS = 4;

__global__ void part_kernel(const float* a, const float* b, float* c, int M, int K, int N) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || column >= N) return;
    const int first = (int64_t)K * blockIdx.z / PARTS, last = (int64_t)K * (blockIdx.z + 1) / PARTS;
    float sum = 0.0f;
    for (int k = first; k < last; ++k) sum += a[(size_t)row * K + k] * b[(size_t)k * N + column];
    if (first < last) atomicAdd(c + (size_t)row * N + column, sum);
}

torch::Tensor split_k(torch::Tensor a, torch::Tensor b) {
    const int M = a.size(0), K = a.size(1), N = b.size(1);
    auto c = torch::zeros({M, N}, a.options());
    part_kernel<<<dim3((N + 31) / 32, (M + 3) / 4, PARTS), dim3(32, 4)>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, K, N);
    return c;
}
""",
    functions=["split_k"],
)


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.split_k(A.contiguous(), B.contiguous())
