"""compaction, step 2: only the counts of the blocks go through memory, and votes find places within a warp.

Before, the running sum of each flag was stored and loaded again. Now a block only counts what it keeps of its 4,096
elements; a single block scans these counts; and a second pass over x finds the places. Within a warp no scan is needed:
__ballot_sync tells each lane which of the 32 lanes keep their element, and the lane counts the bits below its own.

Bought: instead of running sums of 268 MB, x is read twice. One barrier in each of the two passes takes the place of a
scan in shared memory.
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

constexpr int WARP = 32;
constexpr int THREADS = 256;  // a block
constexpr int WARPS = THREADS / WARP;
constexpr int ROWS = 16;              // elements of a thread: one in each row of its warp
constexpr int PART = THREADS * ROWS;  // elements of a block; those of a warp are neighbours
constexpr int SCANNED = 1024;  // threads of the block that scans the counts

// The number of the thread's element in row 0 of a part; those of the next rows follow WARP apart.
__device__ int64_t first_element(int64_t part) {
    return part * PART + threadIdx.x / WARP * (PART / WARPS) + threadIdx.x % WARP;
}

// Loads the thread's elements, 0 past the end, and returns how many the warp keeps. All lanes must call it.
__device__ __forceinline__ int load_rows(const float* x, int64_t first, int64_t length, float (&v)[ROWS]) {
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        const int64_t i = first + row * WARP;
        v[row] = i < length ? x[i] : 0.0f;
    }
    int kept = 0;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) kept += __popc(__ballot_sync(0xffffffff, v[row] != 0.0f));
    return kept;
}

// Stores the warp's kept elements from y[place] on. All lanes must call it.
__device__ __forceinline__ void store_rows(float* y, int place, const float (&v)[ROWS]) {
    const unsigned lower = (1u << threadIdx.x % WARP) - 1;  // the lanes before this one
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        const unsigned kept = __ballot_sync(0xffffffff, v[row] != 0.0f);
        if (v[row] != 0.0f) y[place + __popc(kept & lower)] = v[row];
        place += __popc(kept);
    }
}

// Returns how many elements the block keeps in all, and in `before` how many the warps before the thread's own keep.
__device__ int add_warps(int kept, int& before) {
    __shared__ int kept_by[WARPS];
    const int warp = threadIdx.x / WARP;
    if (threadIdx.x % WARP == 0) kept_by[warp] = kept;
    __syncthreads();  // all warps have counted
    int sum = 0;
    for (int other = 0; other < WARPS; ++other) {
        if (other == warp) before = sum;
        sum += kept_by[other];
    }
    return sum;
}

// counts[b] = how many elements of block b's part of x (length) are not 0.
__global__ void count_kernel(const float* x, int* counts, int64_t length) {
    float v[ROWS];
    int before = 0;
    const int sum = add_warps(load_rows(x, first_element(blockIdx.x), length, v), before);
    if (threadIdx.x == 0) counts[blockIdx.x] = sum;
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
    const int64_t first = first_element(blockIdx.x);
    const int all = begins[gridDim.x];
    float v[ROWS];
    int before = 0;
    add_warps(load_rows(x, first, length, v), before);
    store_rows(y, begins[blockIdx.x] + before, v);
    for (int row = 0; row < ROWS; ++row) {
        const int64_t i = first + row * WARP;
        if (i < length && i >= all) y[i] = 0.0f;  // behind the last one that is kept
    }
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
    const int64_t blocks = (x.numel() + PART - 1) / PART;
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
    name="compaction_02_counts_of_blocks",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["compaction_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (length,) float32 on a GPU -> (length,)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernels.compaction_forward(x)
