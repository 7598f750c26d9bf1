"""matmul: every block makes a tile of C, every thread 8 x 8 elements of it in registers.

An element of C is a row of A times a column of B. In Python:

    for i, j in every position of C:
        C[i, j] = sum(A[i, k] * B[k, j] for k in range(K))

A block makes 128 x 128 elements. It walks along K in steps of 8, and needs 128 x 8 elements of A and 8 x 128 of B in
each: its threads fetch them into shared memory together, one after the other. Then a thread copies 8 elements of
A's tile and 8 of B's into registers and makes 64 products of them, so that a value that was fetched from memory is
used 128 times, and one from shared memory 8 times.

Kernel: matmul_kernel, one block a tile of C.

Your task: fill in the 3 places marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/matmul/model.py computes, for any shape.

  1. fetch TILE * STEP elements of A and as many of B; 0 past the edge of a matrix (about 8 lines)
  2. for each k: EACH elements of both tiles into registers, add their products (about 13 lines)
  3. store the sums, as far as C has such rows and columns (about 8 lines)

Grade it, with or without a GPU:  grader grade kernels_student/matmul.py
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

constexpr int SIDE = 16;               // a block has SIDE x SIDE threads
constexpr int EACH = 8;                // a thread makes EACH x EACH elements of C
constexpr int TILE = SIDE * EACH;      // a block makes TILE x TILE elements
constexpr int STEP = 8;                // so far does a block walk along K at a time
constexpr int64_t MAX_SIDE = INT_MAX - TILE;

// C (M, N) = A (M, K) times B (K, N). The tiles of C are numbered along its rows.
// A block makes one tile of C. Step by step along K, its threads fetch a tile of A and a tile of B into shared memory,
// and then every thread adds the products of its rows and its columns.
__global__ void __launch_bounds__(SIDE * SIDE)
matmul_kernel(const float* A, const float* B, float* C, int M, int K, int N) {
    // A's tile stands on its side: element (r, k) is a_tile[k][r]. Its rows are 4 longer than needed, so that the
    // threads of a warp, which fill 4 columns of 8 rows, write to different banks.
    __shared__ float a_tile[STEP][TILE + 4];
    __shared__ float b_tile[STEP][TILE];
    const int tiles_a_row = (N + TILE - 1) / TILE;
    const int row0 = blockIdx.x / tiles_a_row * TILE;
    const int column0 = blockIdx.x % tiles_a_row * TILE;
    const int thread = threadIdx.y * SIDE + threadIdx.x;

    float sum[EACH][EACH] = {};  // of rows threadIdx.y + r * SIDE and columns threadIdx.x + c * SIDE of the tile
    for (int k0 = 0; k0 < K; k0 += STEP) {
        // YOUR CODE HERE: fetch TILE * STEP elements of A and as many of B; 0 past the edge of a matrix (about 8 lines)
        __syncthreads();  // the tiles are complete

        // YOUR CODE HERE: for each k: EACH elements of both tiles into registers, add their products (about 13 lines)
        __syncthreads();  // nobody reads the tiles any more
    }
    // YOUR CODE HERE: store the sums, as far as C has such rows and columns (about 8 lines)
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
    const int64_t tiles = (M + TILE - 1) / TILE * ((N + TILE - 1) / TILE);
    TORCH_CHECK(tiles <= INT_MAX, "C has more than 2^31 - 1 tiles");
    matmul_kernel<<<tiles, dim3(SIDE, SIDE), 0, stream>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, K, N);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return C;
}
"""

kernels = load_inline(name="matmul", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["matmul_forward"])


class ModelNew(nn.Module):
    """The same product as Model: A (M, K), B (K, N), float32 on a GPU -> (M, N)."""

    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return kernels.matmul_forward(A, B)

# Made from kernels_ref/matmul/solution.py by `grader student`; skeleton 1734647a6cbe.
