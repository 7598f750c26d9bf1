"""It strides over the transposed matrix with the other matrix's number of columns."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void matmul_at_b(const float* A, const float* B, float* C, int M, int N, int K) {
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= M || n >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        sum += A[k * N + m] * B[k * N + n];
    }
    C[m * N + n] = sum;
}

torch::Tensor matmul_at_b_cuda(torch::Tensor A, torch::Tensor B) {
    int K = A.size(0);
    int M = A.size(1);
    int N = B.size(1);
    auto C = torch::empty({M, N}, A.options());
    dim3 block(16, 16);
    dim3 grid((N + 15) / 16, (M + 15) / 16);
    matmul_at_b<<<grid, block>>>(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, N, K);
    return C;
}
"""

ext = load_inline(
    name="matmul_at_b",
    cpp_sources=["torch::Tensor matmul_at_b_cuda(torch::Tensor A, torch::Tensor B);"],
    cuda_sources=[cuda_source],
    functions=["matmul_at_b_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        return ext.matmul_at_b_cuda(A, B)
