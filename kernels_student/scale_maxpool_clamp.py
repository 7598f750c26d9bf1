"""scale_maxpool_clamp: one thread a window scales, takes the maximum and clamps (KernelBench level 2, 85).

Windows lie side by side and below each other; rows and columns left over at the end belong to none. In Python:

    for n, c, py, px in every position of y:
        window = x[n, c, py * pool : (py + 1) * pool, px * pool : (px + 1) * pool] * scale[c]
        y[n, c, py, px] = clamp(max(window), clamp_min, clamp_max)      # NaN if one value of the window is NaN

Kernel: scale_maxpool_clamp_kernel, one thread a window. The scale comes before the maximum: a negative one turns the
largest value into the smallest. Nothing of the size of x is written.

Your task: fill in the 2 places marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/scale_maxpool_clamp/model.py computes, for any shape.

  1. find this thread's window (px, py), its plane n * C + c, its scale (about 5 lines)
  2. keep the largest of the window's scaled values, or a NaN; clamp it; store it (about 11 lines)

Grade it, with or without a GPU:  grader grade kernels_student/scale_maxpool_clamp.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor scale_maxpool_clamp_forward(torch::Tensor x, torch::Tensor scale, int64_t pool, double clamp_min,
                                          double clamp_max);
"""

cuda_source = r"""
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block

// x (N, C, H, W) -> y (N, C, PH, PW) of `total` elements: the maximum of x * scale[c] over a pool x pool window, kept
// between low and high.
__global__ void scale_maxpool_clamp_kernel(const float* x, const float* scale, float* y, int64_t total, int64_t C,
                                           int64_t H, int64_t W, int pool, int64_t PH, int64_t PW, float low,
                                           float high) {
    // YOUR CODE HERE: find this thread's window (px, py), its plane n * C + c, its scale (about 5 lines)

    // YOUR CODE HERE: keep the largest of the window's scaled values, or a NaN; clamp it; store it (about 11 lines)
}

// The kernel reads bare memory: refuse a tensor that is not what it takes it for.
static void check(const torch::Tensor& t, const char* name, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
}

torch::Tensor scale_maxpool_clamp_forward(torch::Tensor x, torch::Tensor scale, int64_t pool, double clamp_min,
                                          double clamp_max) {
    check(x, "x", x.device());
    check(scale, "scale", x.device());
    TORCH_CHECK(x.dim() == 4, "x has ", x.dim(), " dimensions instead of 4");
    const int64_t C = x.size(1), H = x.size(2), W = x.size(3);
    TORCH_CHECK(H <= INT_MAX && W <= INT_MAX && C <= INT_MAX, "x has a side longer than 2^31 - 1");
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({C, 1, 1}), "scale must be (", C, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(pool > 0 && pool <= H && pool <= W,
                "a pooling window of ", pool, " does not fit into the image (", H, " x ", W, ")");
    x = x.contiguous();
    scale = scale.contiguous();

    const int64_t PH = H / pool, PW = W / pool;
    torch::Tensor y = torch::empty({x.size(0), C, PH, PW}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (total + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "y has more elements than a grid of blocks of ", THREADS, " threads");
    scale_maxpool_clamp_kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), total, C, H, W, pool, PH, PW, clamp_min,
        clamp_max);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="scale_maxpool_clamp",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["scale_maxpool_clamp_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, C, H, W) float32 on a GPU, scale (C, 1, 1) -> (N, C, H // pool, W // pool)."""

    def __init__(self, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.pool = maxpool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        return kernels.scale_maxpool_clamp_forward(x, self.scale, self.pool, self.clamp_min, self.clamp_max)

# Made from kernels_ref/scale_maxpool_clamp/solution.py by `grader student`; skeleton 1632bcfbc224.
