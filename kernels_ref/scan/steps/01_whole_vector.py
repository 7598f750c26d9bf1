"""scan, step 1: Hillis and Steele's scan over the whole vector, one launch a round.

In the round of distance d every element gets the value d places to its left added. Blocks cannot wait for each other
in a kernel, so that each round is a launch of its own, which reads the vector from one tensor and writes it to
another. A vector of 2^26 elements takes 26 rounds.

Bought: nothing yet. Counted for 2^26 elements: each of the 26 rounds reads 268 MB and writes 268 MB, 14 GB together.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor scan_forward(torch::Tensor x);"

cuda_source = r"""
#include <utility>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block

// One round: y[i] = x[i] + x[i - distance], or x[i] where there is no such element.
__global__ void add_shifted_kernel(const float* x, float* y, int64_t distance, int64_t length) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= length) return;
    y[i] = i >= distance ? x[i - distance] + x[i] : x[i];
}

torch::Tensor scan_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x is on ", x.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x is ", x.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(x.dim() == 1, "x has ", x.dim(), " dimensions instead of 1");
    x = x.contiguous();
    const int64_t length = x.numel();
    if (length == 0) return torch::empty_like(x);  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (length + THREADS - 1) / THREADS;
    torch::Tensor from = x, to = torch::empty_like(x), spare = torch::empty_like(x);
    int64_t distance = 1;
    do {  // at least once: the result may not be x itself
        add_shifted_kernel<<<blocks, THREADS, 0, stream>>>(
            from.data_ptr<float>(), to.data_ptr<float>(), distance, length);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        from = to;
        std::swap(to, spare);
        distance *= 2;
    } while (distance < length);
    return from;
}
"""

kernels = load_inline(
    name="scan_01_whole_vector", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["scan_forward"]
)


class ModelNew(nn.Module):
    """The same function as Model: x (length,) float32 on a GPU -> (length,)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernels.scan_forward(x)
