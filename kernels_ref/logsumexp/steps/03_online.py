"""logsumexp, step 3: one pass, the sum corrected whenever the maximum grows.

Before, x was read twice: the threads under way at a time read 69 MB, more than L2 keeps, so most of it came from DRAM
twice. Now a thread keeps the largest value so far and the sum of exponentials taken relative to it. A larger value
makes it multiply that sum by e^(old - new), which is what the sum would be relative to the new one. Each channel
takes one exponential, of minus the distance between the two.

Bought: sectors loaded fall from 37 to 18 million, load requests from 8 to 4 million, for 6 million instructions
more.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor logsumexp_forward(torch::Tensor x);"

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block

// x (N, C, pixels) -> y (N, pixels), `total` elements, one a thread.
__global__ void logsumexp_kernel(const float* x, float* y, int64_t total, int64_t C, int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    x += i / pixels * C * pixels + i % pixels;  // this pixel in channel 0; channel c lies c * pixels further on

    float top = x[0], sum = 1.0f;
    for (int64_t c = 1; c < C; ++c) {
        const float v = x[c * pixels];
        // Equal infinities have no distance; the result is infinite whatever their sum is.
        const float e = v == top ? 1.0f : expf(-fabsf(v - top));
        sum = v > top ? sum * e + 1.0f : sum + e;
        top = v > top ? v : top;
    }
    y[i] = top + logf(sum);
}

torch::Tensor logsumexp_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x is on ", x.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x is ", x.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(x.dim() == 4, "x has ", x.dim(), " dimensions instead of 4");
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    x = x.contiguous();

    torch::Tensor y = torch::empty({N, 1, H, W}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    logsumexp_kernel<<<(total + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), total, C, H * W);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="logsumexp_03_online",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["logsumexp_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, C, H, W) float32 on a GPU -> (N, 1, H, W)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return kernels.logsumexp_forward(x)
