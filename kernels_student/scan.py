"""scan: each block scans its own part, the sums of the blocks are scanned, and each block adds what lies before it.

What is to be computed, in Python:

    total = 0
    for i in range(length):
        total += x[i]
        y[i] = total

Here each sum waits for the one before it. Hillis and Steele's scan has no such chain: a block of THREADS threads takes
log2(THREADS) rounds. In the round of distance d each thread adds the value d places to its left to its own, so that
afterwards each place holds the sum of the last 2 d elements up to it. A thread may not overwrite what its neighbour
still has to read: each round reads one buffer and writes the other.

Kernels: scan_blocks_kernel, one block a part of THREADS elements, which also stores the sum of its part;
add_offsets_kernel, which adds to each element the sum of all parts before its own. The sums of the parts are scanned
by the same two kernels, until one block has them all.

Your task: fill in the 2 places marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/scan/model.py computes, for any shape.

  1. load, 0 past the end; scan in log2(THREADS) rounds, from buffer to buffer; store (about 13 lines)
  2. which entry of ends lies before this block? The first block has none (about 3 lines)

Grade it, with or without a GPU:  grader grade kernels_student/scan.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor scan_forward(torch::Tensor x);"

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block, and as many elements

// y[i] = the sum of x from the first element of i's block up to i; sums[block] = the sum of the block's elements.
// x and y (length) may be the same memory.
__global__ void scan_blocks_kernel(const float* x, float* y, float* sums, int64_t length) {
    __shared__ float buffer[2][THREADS];  // a round reads one and writes the other
    // YOUR CODE HERE: load, 0 past the end; scan in log2(THREADS) rounds, from buffer to buffer; store (about 13 lines)
}

// y[i] += the sum of all blocks before i's. ends[block] is the sum of all elements up to the block's last one.
__global__ void add_offsets_kernel(float* y, const float* ends, int64_t length) {
    // YOUR CODE HERE: which entry of ends lies before this block? The first block has none (about 3 lines)
}

// Scans x into y, both `length` elements, on the current stream.
static void scan(const float* x, float* y, int64_t length, const torch::TensorOptions& options) {
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (length + THREADS - 1) / THREADS;
    torch::Tensor sums = torch::empty({blocks}, options);
    scan_blocks_kernel<<<blocks, THREADS, 0, stream>>>(x, y, sums.data_ptr<float>(), length);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    if (blocks == 1) return;
    scan(sums.data_ptr<float>(), sums.data_ptr<float>(), blocks, options);
    add_offsets_kernel<<<blocks, THREADS, 0, stream>>>(y, sums.data_ptr<float>(), length);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor scan_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x is on ", x.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x is ", x.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(x.dim() == 1, "x has ", x.dim(), " dimensions instead of 1");
    x = x.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (x.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    scan(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), x.options());
    return y;
}
"""

kernels = load_inline(name="scan", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["scan_forward"])


class ModelNew(nn.Module):
    """The same function as Model: x (length,) float32 on a GPU -> (length,)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernels.scan_forward(x)

# Made from kernels_ref/scan/solution.py by `grader student`; skeleton 6af49db6b199.
