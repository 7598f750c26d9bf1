"""forward and backward share a workspace that is allocated once and grows: transposed copies, written before each use."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="shared_workspace",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b, torch::Tensor workspace);",
    cuda_sources=r"""
__global__ void transpose_kernel(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = in[(size_t)row * columns + column];
    __syncthreads();
    column = blockIdx.y * 16 + threadIdx.x, row = blockIdx.x * 16 + threadIdx.y;
    if (column < rows && row < columns) out[(size_t)row * rows + column] = tile[threadIdx.x][threadIdx.y];
}
// a (M, K), bt (N, K)
__global__ void dots_kernel(const float* a, const float* bt, float* c, int M, int K, int N) {
    const int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
    if (n >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += a[(size_t)m * K + k] * bt[(size_t)n * K + k];
    c[(size_t)m * N + n] = sum;
}
torch::Tensor product(torch::Tensor a, torch::Tensor b, torch::Tensor workspace) {
    const int M = a.size(0), K = a.size(1), N = b.size(1);
    auto c = torch::empty({M, N}, a.options());
    transpose_kernel<<<dim3((N + 15) / 16, (K + 15) / 16), dim3(16, 16)>>>(b.data_ptr<float>(), workspace.data_ptr<float>(), K, N);
    dots_kernel<<<dim3((N + 63) / 64, M), 64>>>(a.data_ptr<float>(), workspace.data_ptr<float>(), c.data_ptr<float>(), M, K, N);
    return c;
}
""",
    functions=["product"],
)
_workspace = {}


def multiply(a, b):
    key = a.device
    if key not in _workspace or _workspace[key].numel() < b.numel():
        _workspace[key] = torch.empty(b.numel(), device=a.device)
    return ext.product(a.contiguous(), b.contiguous(), _workspace[key])


class Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return multiply(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return multiply(g, b.T), multiply(a.T, g)


class ModelNew(nn.Module):
    def forward(self, A, B):
        return Multiply.apply(A, B)
