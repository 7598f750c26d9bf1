"""histogram: each block counts in bins of its own in shared memory, and adds them to the result at its end.

What is to be computed, in Python:

    counts = [0] * bins
    for v in x:
        if low <= v <= high:
            bin = int((v - low) * bins / (high - low))    # rounded down
            counts[min(bin, bins - 1)] += 1               # high belongs to the last bin

Two threads may not add to a bin at the same time: atomicAdd makes them do so one after another. In global memory that
takes long, because all threads of the GPU wait for the same few addresses. The atomics of shared memory are much
faster, and only the threads of one block meet there.

Kernels: clear_kernel sets the result to 0; histogram_kernel counts. Its grid has at most BLOCKS blocks, however long x
is, so that few blocks add their bins to the result: thread t of all threads takes the values t, t + threads and so on.

Your task: fill in the 2 places marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/histogram/model.py computes, for any shape.

  1. which values are outside? To which bin do the others belong, high included? (about 3 lines)
  2. clear the bins; count the values first, first + step, ...; add the bins to counts (about 8 lines)

Grade it, with or without a GPU:  grader grade kernels_student/histogram.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor histogram_forward(torch::Tensor x, int64_t bins, double low, double high);"

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 512;         // a block
constexpr int BLOCKS = 528;          // at most: 4 for each of an H200's 132 multiprocessors
constexpr int MOST_BINS = 48 * 256;  // what 48 KiB of shared memory hold

// counts (bins) = 0
__global__ void clear_kernel(int* counts, int bins) {
    const int b = blockIdx.x * THREADS + threadIdx.x;
    if (b < bins) counts[b] = 0;
}

// The bin of v: bin b holds the values from low + b (high - low) / bins up to the next edge. -1 for values outside.
__device__ int find_bin(float v, float low, float high, int bins) {
    // YOUR CODE HERE: which values are outside? To which bin do the others belong, high included? (about 3 lines)
}

// counts (bins) += how many values of x (length) lie in each bin.
__global__ void histogram_kernel(const float* x, int* counts, int64_t length, float low, float high, int bins) {
    extern __shared__ int own[];  // the block's bins
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x, step = (int64_t)gridDim.x * THREADS;
    // YOUR CODE HERE: clear the bins; count the values first, first + step, ...; add the bins to counts (about 8 lines)
}

torch::Tensor histogram_forward(torch::Tensor x, int64_t bins, double low, double high) {
    TORCH_CHECK(x.is_cuda(), "x is on ", x.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x is ", x.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(x.dim() == 1, "x has ", x.dim(), " dimensions instead of 1");
    TORCH_CHECK(low < high, "low is ", low, ", which is not less than high, ", high);
    TORCH_CHECK(1 <= bins && bins <= MOST_BINS, "bins is ", bins, ", not a number from 1 to ", MOST_BINS);
    TORCH_CHECK(x.numel() <= INT_MAX, "x is too long for counts of 32 bits");
    x = x.contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor counts = torch::empty({bins}, x.options().dtype(torch::kInt32));
    clear_kernel<<<(bins + THREADS - 1) / THREADS, THREADS, 0, stream>>>(counts.data_ptr<int>(), bins);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    if (x.numel() == 0) return counts;  // a grid of no blocks is a launch error

    const int64_t blocks = std::min<int64_t>((x.numel() + THREADS - 1) / THREADS, BLOCKS);
    histogram_kernel<<<blocks, THREADS, bins * sizeof(int), stream>>>(
        x.data_ptr<float>(), counts.data_ptr<int>(), x.numel(), low, high, bins);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return counts;
}
"""

kernels = load_inline(
    name="histogram", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["histogram_forward"]
)


class ModelNew(nn.Module):
    """The same function as Model: x (length,) float32 on a GPU -> (bins,) int32."""

    def __init__(self, bins, low, high):
        super().__init__()
        self.bins = bins
        self.low = low
        self.high = high

    def forward(self, x):
        return kernels.histogram_forward(x, self.bins, self.low, self.high)

# Made from kernels_ref/histogram/solution.py by `grader student`; skeleton 8725d0d5f405.
