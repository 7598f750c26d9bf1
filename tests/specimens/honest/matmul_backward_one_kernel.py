"""The same strided kernel computes the product and both gradients, from transposed views and without a copy."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="one_kernel",
    cpp_sources="torch::Tensor mm(const torch::Tensor& a, const torch::Tensor& b);",
    cuda_sources=r"""
struct Matrix { const float* data; long row, column; };

__device__ inline float element(Matrix m, long i, long j) { return m.data[i * m.row + j * m.column]; }

__global__ void mm_kernel(Matrix a, Matrix b, float* c, int M, int K, int N) {
    const int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y * blockDim.y + threadIdx.y;
    if (n >= N || m >= M) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += element(a, m, k) * element(b, k, n);
    c[(size_t)m * N + n] = sum;
}
static Matrix describe(const torch::Tensor& t) { return {t.data_ptr<float>(), (long)t.stride(0), (long)t.stride(1)}; }

torch::Tensor mm(const torch::Tensor& a, const torch::Tensor& b) {
    const int M = a.size(0), K = a.size(1), N = b.size(1);
    auto c = torch::empty({M, N}, a.options());
    mm_kernel<<<dim3((N + 15) / 16, (M + 7) / 8), dim3(16, 8)>>>(describe(a), describe(b), c.data_ptr<float>(), M, K, N);
    return c;
}
""",
    functions=["mm"],
)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return ext.mm(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        ga = ext.mm(g, b.t()) if ctx.needs_input_grad[0] else None
        gb = ext.mm(a.t(), g) if ctx.needs_input_grad[1] else None
        return ga, gb


class ModelNew(nn.Module):
    def forward(self, A, B):
        return Product.apply(A, B)
