"""matmul, step 1: one thread per element of C, numbered down the columns.

A thread walks along a row of A and down a column of B. Its neighbours in the warp have the next rows and the same
column, so that a warp's load of A touches 32 rows, a piece of 32 bytes in each, for 4 bytes that it uses.

Bought: nothing yet. At full size simt counts 35,433 million sectors that are loaded, 1.1 TB, in 2,147 million
requests: every request of A touches 32 lines.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor matmul_forward(torch::Tensor A, torch::Tensor B);"

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int64_t MAX_SIDE = INT_MAX;
constexpr int THREADS = 256;  // a block

// C (M, N) = A (M, K) times B (K, N), one element a thread: element i is in row i % M.
__global__ void matmul_kernel(const float* A, const float* B, float* C, int64_t M, int64_t K, int64_t N) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= M * N) return;
    const int64_t row = i % M, column = i / M;
    float sum = 0.0f;
    for (int64_t k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = sum;
}

// The kernel reads bare memory: refuse a tensor that is not what it takes it for.
static void check(const torch::Tensor& t, const char* name, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", A on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == 2, name, " has ", t.dim(), " dimensions instead of 2");
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= MAX_SIDE, name, " has a side longer than ", MAX_SIDE);
}

torch::Tensor matmul_forward(torch::Tensor A, torch::Tensor B) {
    check(A, "A", A.device());
    check(B, "B", A.device());
    const int64_t M = A.size(0), K = A.size(1), N = B.size(1);
    TORCH_CHECK(B.size(0) == K, "A has ", K, " columns and B ", B.size(0), " rows: both must be the same");
    A = A.contiguous();
    B = B.contiguous();

    torch::Tensor C = torch::empty({M, N}, A.options());
    if (C.numel() == 0) return C;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(A.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t total = M * N;
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "C has more elements than a grid of blocks of ", THREADS, " threads");
    matmul_kernel<<<blocks, THREADS, 0, stream>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, K, N);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return C;
}
"""

kernels = load_inline(
    name="matmul_01_naive", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["matmul_forward"]
)


class ModelNew(nn.Module):
    """The same product as Model: A (M, K), B (K, N), float32 on a GPU -> (M, N)."""

    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return kernels.matmul_forward(A, B)
