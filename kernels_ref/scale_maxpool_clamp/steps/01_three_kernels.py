"""scale_maxpool_clamp, step 1: a kernel for each operator.

As in the model's own line: multiply all of x by the scale, take the maximum of every window, clamp. Each kernel
writes its result to memory, where the next one reads it again.

Bought: nothing yet. At full size simt counts 1,647 million different bytes that the three kernels read or write,
8.4 million 64-bit divisions of a warp, and 569,536 blocks to start.
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

// out = in * scale[c], for in and out (N, C, pixels) of `total` elements, one a thread.
__global__ void scale_kernel(const float* in, const float* scale, float* out, int64_t total, int64_t C,
                             int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < total) out[i] = in[i] * scale[i / pixels % C];
}

// in (planes, H, W) -> out (planes, PH, PW) of `total` elements, one a thread: the maximum of each pool x pool window.
__global__ void maxpool_kernel(const float* in, float* out, int64_t total, int64_t H, int64_t W, int pool, int64_t PH,
                               int64_t PW) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    const int64_t px = i % PW, py = i / PW % PH, plane = i / PW / PH;
    float best = -INFINITY;
    for (int dy = 0; dy < pool; ++dy) {
        const float* row = in + (plane * H + py * pool + dy) * W + px * pool;
        for (int dx = 0; dx < pool; ++dx) {
            if (row[dx] > best || isnan(row[dx])) best = row[dx];  // fmaxf would hide a NaN
        }
    }
    out[i] = best;
}

// out = in, kept between low and high; a NaN stays one.
__global__ void clamp_kernel(const float* in, float* out, int64_t total, float low, float high) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    float v = in[i];
    if (v < low) v = low;
    if (v > high) v = high;
    out[i] = v;
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
    const int64_t blocks = (x.numel() + THREADS - 1) / THREADS, blocks_of_y = (total + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "x has more elements than a grid of blocks of ", THREADS, " threads");
    torch::Tensor scaled = torch::empty_like(x), pooled = torch::empty_like(y);
    scale_kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), scaled.data_ptr<float>(), x.numel(), C, H * W);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    maxpool_kernel<<<blocks_of_y, THREADS, 0, stream>>>(
        scaled.data_ptr<float>(), pooled.data_ptr<float>(), total, H, W, pool, PH, PW);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    clamp_kernel<<<blocks_of_y, THREADS, 0, stream>>>(
        pooled.data_ptr<float>(), y.data_ptr<float>(), total, clamp_min, clamp_max);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="scale_maxpool_clamp_01_three_kernels",
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
