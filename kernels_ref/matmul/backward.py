"""matmul with its backward: two more products, of the same kernel, that read matrices on their side.

An element A[i, k] has a part in every element of row i of C, with the factor B[k, j]; an element B[k, j] has one in
every element of column j, with the factor A[i, k]. So, from the gradient gC of C, in Python:

    for i, k in every position of A:
        gA[i, k] = sum(gC[i, j] * B[k, j] for j in range(N))      # gC times B on its side
    for k, j in every position of B:
        gB[k, j] = sum(A[i, k] * gC[i, j] for i in range(M))      # A on its side times gC

Nothing has to be turned in memory: a matrix on its side is the same memory with other steps. Element (row, column) of
any of them is at row * row_step + column * column_step, and for B (K, N) the steps are N and 1; for B on its side they
are 1 and N.

Kernel: matmul_kernel, one block a tile of the product, for any steps: the forward, gA and gB. Each element is added up
by one thread, in one order, so that every run gives the same bits.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor matmul_forward(torch::Tensor A, torch::Tensor B);
std::vector<torch::Tensor> matmul_backward(torch::Tensor gC, torch::Tensor A, torch::Tensor B, bool wants_A,
                                           bool wants_B);
"""

cuda_source = r"""
#include <climits>
#include <vector>
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int SIDE = 16;               // a block has SIDE x SIDE threads
constexpr int EACH = 8;                // a thread makes EACH x EACH elements of the product
constexpr int TILE = SIDE * EACH;      // a block makes TILE x TILE elements
constexpr int STEP = 8;                // so far does a block walk along the sums at a time
constexpr int64_t MAX_SIDE = INT_MAX - TILE;

// Fills tile[k][t], for t < TILE and k < STEP, with from[t * step + k * k_step]; 0 from t = `size` or k = `length` on.
// The block's threads stand side by side where the memory does: along k if k_step is 1, else along t.
template <typename T>
__device__ void fetch(T (&tile)[STEP][TILE + 4], const T* from, int64_t step, int64_t k_step, int size, int length) {
    const bool along_k = k_step == 1;
    for (int i = threadIdx.y * SIDE + threadIdx.x; i < TILE * STEP; i += SIDE * SIDE) {
        const int t = along_k ? i / STEP : i % TILE, k = along_k ? i % STEP : i / TILE;
        tile[k][t] = t < size && k < length ? from[t * step + k * k_step] : T(0);
    }
}

// product (rows, columns) = left (rows, length) times right (length, columns). Element (r, k) of left is at
// r * left_row + k * left_k, element (k, c) of right at k * right_k + c * right_column; product lies row by row.
// A block makes one tile of it. T is float or double.
template <typename T>
__global__ void __launch_bounds__(SIDE * SIDE)
matmul_kernel(const T* left, int64_t left_row, int64_t left_k, const T* right, int64_t right_k, int64_t right_column,
              T* product, int rows, int length, int columns) {
    // Rows are 4 longer than needed, so that the threads that fill a tile along k write to different banks.
    __shared__ T left_tile[STEP][TILE + 4];
    __shared__ T right_tile[STEP][TILE + 4];
    const int tiles_a_row = (columns + TILE - 1) / TILE;
    const int row0 = blockIdx.x / tiles_a_row * TILE;
    const int column0 = blockIdx.x % tiles_a_row * TILE;

    T sum[EACH][EACH] = {};  // of rows threadIdx.y + r * SIDE and columns threadIdx.x + c * SIDE of the tile
    for (int k0 = 0; k0 < length; k0 += STEP) {
        fetch(left_tile, left + row0 * left_row + k0 * left_k, left_row, left_k, rows - row0, length - k0);
        fetch(right_tile, right + column0 * right_column + k0 * right_k, right_column, right_k, columns - column0,
              length - k0);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < STEP; ++k) {
            T l[EACH], r[EACH];
#pragma unroll
            for (int i = 0; i < EACH; ++i) l[i] = left_tile[k][threadIdx.y + i * SIDE];
#pragma unroll
            for (int j = 0; j < EACH; ++j) r[j] = right_tile[k][threadIdx.x + j * SIDE];
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
#pragma unroll
                for (int j = 0; j < EACH; ++j) sum[i][j] += l[i] * r[j];
            }
        }
        __syncthreads();  // nobody reads the tiles any more
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const int row = row0 + threadIdx.y + i * SIDE, column = column0 + threadIdx.x + j * SIDE;
            if (row < rows && column < columns) product[(int64_t)row * columns + column] = sum[i][j];
        }
    }
}

// Launches it: product (rows, columns) = left (rows, length) times right (length, columns), with these steps.
template <typename T>
static void multiply(const torch::Tensor& left, int64_t left_row, int64_t left_k, const torch::Tensor& right,
                     int64_t right_k, int64_t right_column, const torch::Tensor& product, int64_t rows, int64_t length,
                     int64_t columns) {
    const int64_t tiles = (rows + TILE - 1) / TILE * ((columns + TILE - 1) / TILE);
    TORCH_CHECK(tiles <= INT_MAX, "a product has more than 2^31 - 1 tiles");
    if (tiles == 0) return;  // a grid of no blocks is a launch error
    matmul_kernel<T><<<tiles, dim3(SIDE, SIDE), 0, c10::cuda::getCurrentCUDAStream()>>>(
        left.data_ptr<T>(), left_row, left_k, right.data_ptr<T>(), right_k, right_column, product.data_ptr<T>(), rows,
        length, columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// The kernel reads bare memory: refuse a tensor that is not what it takes it for.
static void check(const torch::Tensor& t, const char* name, const torch::Tensor& A) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == A.device(), name, " is on ", t.device(), ", A on ", A.device(), ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.scalar_type() == A.scalar_type(), name, " is ", t.scalar_type(), ", A is ", A.scalar_type());
    TORCH_CHECK(t.dim() == 2, name, " has ", t.dim(), " dimensions instead of 2");
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= MAX_SIDE, name, " has a side longer than ", MAX_SIDE);
}

torch::Tensor matmul_forward(torch::Tensor A, torch::Tensor B) {
    check(A, "A", A);
    check(B, "B", A);
    const int64_t M = A.size(0), K = A.size(1), N = B.size(1);
    TORCH_CHECK(B.size(0) == K, "A has ", K, " columns and B ", B.size(0), " rows: both must be the same");
    A = A.contiguous();
    B = B.contiguous();

    const c10::cuda::CUDAGuard guard(A.device());
    torch::Tensor C = torch::empty({M, N}, A.options());
    AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "matmul_forward", [&] {
        multiply<scalar_t>(A, K, 1, B, N, 1, C, M, K, N);
    });
    return C;
}

// A, B: what forward read. Returns gA and gB; one that is not wanted is left empty.
std::vector<torch::Tensor> matmul_backward(torch::Tensor gC, torch::Tensor A, torch::Tensor B, bool wants_A,
                                           bool wants_B) {
    check(gC, "gC", A);
    const int64_t M = A.size(0), K = A.size(1), N = B.size(1);
    gC = gC.contiguous();  // sum().backward() sends one number with strides of 0
    A = A.contiguous();
    B = B.contiguous();

    const c10::cuda::CUDAGuard guard(A.device());
    torch::Tensor gA, gB;
    AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "matmul_backward", [&] {
        if (wants_A) {
            gA = torch::empty({M, K}, A.options());
            // >>> exercise: multiply gC and B on its side into gA: steps, then rows, length, columns (about 2 lines)
            multiply<scalar_t>(gC, N, 1, B, 1, N,
                               gA, M, N, K);
            // <<<
        }
        if (wants_B) {
            gB = torch::empty({K, N}, A.options());
            // >>> exercise: multiply A on its side and gC into gB: steps, then rows, length, columns (about 2 lines)
            multiply<scalar_t>(A, 1, K, gC, N, 1,
                               gB, K, M, N);
            // <<<
        }
    });
    return {gA, gB};
}
"""

kernels = load_inline(
    name="matmul_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["matmul_forward", "matmul_backward"],
)


class Matmul(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, A, B):
        ctx.save_for_backward(A, B)
        return kernels.matmul_forward(A, B)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gC):
        return tuple(kernels.matmul_backward(gC, *ctx.saved_tensors, *ctx.needs_input_grad))


class ModelNew(nn.Module):
    """The same product as Model with the same gradients: A (M, K), B (K, N) on a GPU -> (M, N)."""

    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return Matmul.apply(A, B)
