"""compaction: each block counts what it keeps, the counts are scanned, and each element finds its place.

What is to be computed, in Python:

    kept = 0
    y = [0.0] * length
    for v in x:
        if v != 0:
            y[kept] = v
            kept += 1

Here each place waits for the one before it. But the place of an element is the number of elements kept before it, and
that is the sum of three numbers: kept by all blocks before its own, by the warps before its own in the block, and by
the lanes before its own in the warp.

Kernels: count_kernel counts for each block; scan_kernel, a single block, adds the counts up to where each block's
elements begin; scatter_kernel stores each kept element at its place, and zeros behind the last one.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/compaction/model.py computes, for any shape.

  1. store v at its place; the places from begins[gridDim.x] on get 0 (about 6 lines)

Grade it, with or without a GPU:  grader grade kernels_student/compaction.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor compaction_forward(torch::Tensor x);"

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block, and as many elements
constexpr int WARPS = THREADS / 32;
constexpr int SCANNED = 1024;  // threads of the block that scans the counts

// counts[b] = how many elements of block b's part of x (length) are not 0.
__global__ void count_kernel(const float* x, int* counts, int64_t length) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int kept = __syncthreads_count(i < length && x[i] != 0.0f);
    if (threadIdx.x == 0) counts[blockIdx.x] = kept;
}

// begins[b] = the sum of the counts before b's, for b from 0 to blocks: the last one is the sum of all. One block.
__global__ void scan_kernel(const int* counts, int* begins, int blocks) {
    __shared__ int ends[SCANNED / 32], total;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) total = 0;
    for (int start = 0; start < blocks; start += SCANNED) {
        const int b = start + threadIdx.x, own = b < blocks ? counts[b] : 0;
        int upto = own;
        for (int distance = 1; distance < 32; distance *= 2) {
            const int below = __shfl_up_sync(0xffffffff, upto, distance);
            if (lane >= distance) upto += below;
        }
        if (lane == 31) ends[warp] = upto;
        __syncthreads();  // the sums of the warps, and the total so far, are there
        int before = total;
        for (int lower = 0; lower < warp; ++lower) before += ends[lower];
        if (b < blocks) begins[b] = before + upto - own;
        __syncthreads();  // all have read them
        if (threadIdx.x == SCANNED - 1) total = before + upto;
    }
    __syncthreads();
    if (threadIdx.x == 0) begins[blocks] = total;
}

// y (length) = the elements of x that are not 0, in order, then zeros.
__global__ void scatter_kernel(const float* x, const int* begins, float* y, int64_t length) {
    __shared__ int kept_by[WARPS];  // how many elements each warp keeps
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const float v = i < length ? x[i] : 0.0f;
    const unsigned kept = __ballot_sync(0xffffffff, v != 0.0f);  // bit k: whether lane k keeps its element
    // YOUR CODE HERE: store v at its place; the places from begins[gridDim.x] on get 0 (about 6 lines)
}

torch::Tensor compaction_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x is on ", x.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x is ", x.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(x.dim() == 1, "x has ", x.dim(), " dimensions instead of 1");
    TORCH_CHECK(x.numel() <= INT_MAX, "x is too long for places of 32 bits");
    x = x.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (x.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (x.numel() + THREADS - 1) / THREADS;
    const auto whole = x.options().dtype(torch::kInt32);
    torch::Tensor counts = torch::empty({blocks}, whole), begins = torch::empty({blocks + 1}, whole);
    count_kernel<<<blocks, THREADS, 0, stream>>>(x.data_ptr<float>(), counts.data_ptr<int>(), x.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    scan_kernel<<<1, SCANNED, 0, stream>>>(counts.data_ptr<int>(), begins.data_ptr<int>(), blocks);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    scatter_kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), begins.data_ptr<int>(), y.data_ptr<float>(), x.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="compaction", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["compaction_forward"]
)


class ModelNew(nn.Module):
    """The same function as Model: x (length,) float32 on a GPU -> (length,)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernels.compaction_forward(x)

# Made from kernels_ref/compaction/solution.py by `grader student`; skeleton f282aeda5584.
