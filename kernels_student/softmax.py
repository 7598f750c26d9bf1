"""softmax: one block a row, whose threads walk over it three times.

What is to be computed, in Python:

    for r in every row:
        top = max(x[r])
        total = sum(exp(v - top) for v in x[r])
        y[r, c] = exp(x[r, c] - top) / total, for every column c

exp(x) alone is infinite from x = 88.8 on in float32. With the row's largest value taken out first, no exponential is
above 1 and one of them is exactly 1; the quotient stays the same, as both its parts are multiplied by exp(-top).

Kernel: softmax_kernel. A row's columns are neighbours in memory, and so are the columns that a warp reads at a time.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/softmax/model.py computes, for any shape.

  1. pass 1, the maximum; pass 2, the sum of exponentials; pass 3, store the shares (about 9 lines)

Grade it, with or without a GPU:  grader grade kernels_student/softmax.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor softmax_forward(torch::Tensor x);"

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block: a power of two

// Largest of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_max(float v) {
    __shared__ float partial[THREADS];
    partial[threadIdx.x] = v;
    __syncthreads();  // all have written
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();  // this level is complete
    }
    v = partial[0];
    __syncthreads();  // all have read: the next call may write
    return v;
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_sum(float v) {
    __shared__ float partial[THREADS];
    partial[threadIdx.x] = v;
    __syncthreads();  // all have written
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();  // this level is complete
    }
    v = partial[0];
    __syncthreads();  // all have read: the next call may write
    return v;
}

// One block a row: x (rows, columns) -> y, the same shape.
__global__ void softmax_kernel(const float* x, float* y, int64_t columns) {
    x += blockIdx.x * columns;  // from here on x[0] and y[0] are the first elements of this block's row
    y += blockIdx.x * columns;
    // YOUR CODE HERE: pass 1, the maximum; pass 2, the sum of exponentials; pass 3, store the shares (about 9 lines)
}

torch::Tensor softmax_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x is on ", x.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x is ", x.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(x.dim() == 2, "x has ", x.dim(), " dimensions instead of 2");
    const int64_t rows = x.size(0), columns = x.size(1);
    TORCH_CHECK(rows <= INT_MAX, "x has more than 2^31 - 1 rows");
    x = x.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    softmax_kernel<<<rows, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(name="softmax", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["softmax_forward"])


class ModelNew(nn.Module):
    """The same function as Model: x (rows, columns) float32 on a GPU -> the same shape."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernels.softmax_forward(x)

# Made from kernels_ref/softmax/solution.py by `grader student`; skeleton 00db8757df41.
