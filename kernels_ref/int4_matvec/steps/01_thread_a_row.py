"""int4_matvec, step 1: one thread a row, which reads a byte of two weights at a time.

It is the definition, weight by weight. Neighbouring threads have neighbouring rows, whose bytes are 4,096 apart: each
load of a warp touches 32 sectors for 32 bytes. And 28,672 threads are few: a GPU has room for ten times as many.

Bought: nothing yet. At full size simt counts 242 million sectors in 14.7 million load requests: half of the sectors are
fetched for bytes of packed, the other half for scales.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor int4_matvec_forward(torch::Tensor x, torch::Tensor packed, torch::Tensor scales, int64_t group_size);
"""

cuda_source = r"""
#include <climits>
#include <cuda_fp16.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 64;  // of a block, one row each

// x (N, columns), packed (rows, columns / 2), scales (rows, groups) -> y (N, rows). blockIdx.y is the number of the x.
__global__ void int4_matvec_kernel(const __half* x, const uint8_t* packed, const __half* scales, __half* y, int rows,
                                   int columns, int groups, int group_size) {
    const int row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    x += (int64_t)blockIdx.y * columns;
    packed += (int64_t)row * (columns / 2);
    scales += (int64_t)row * groups;
    float sum = 0.0f;
    for (int c = 0; c < columns; c += 2) {
        const int two = packed[c / 2];  // the first in the lower four bits: a GPU stores a word's lowest byte first
        const float scale = __half2float(scales[c / group_size]);
        sum += ((two & 15) - 8) * scale * __half2float(x[c]);
        sum += ((two >> 4) - 8) * scale * __half2float(x[c + 1]);
    }
    y[(int64_t)blockIdx.y * rows + row] = __float2half(sum);
}

torch::Tensor int4_matvec_forward(torch::Tensor x, torch::Tensor packed, torch::Tensor scales, int64_t group_size) {
    const std::pair<const char*, torch::Tensor> inputs[] = {{"x", x}, {"scales", scales}, {"packed", packed}};
    for (const auto& [name, t] : inputs) {
        TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
        TORCH_CHECK(t.dim() == 2, name, " has ", t.dim(), " dimensions instead of 2");
    }
    TORCH_CHECK(x.scalar_type() == torch::kHalf, "x is ", x.scalar_type(), ", not float16: use .half()");
    TORCH_CHECK(scales.scalar_type() == torch::kHalf, "scales is ", scales.scalar_type(), ", not float16: use .half()");
    TORCH_CHECK(packed.scalar_type() == torch::kInt, "packed is ", packed.scalar_type(), ", not int32: use .int()");
    const int64_t batch = x.size(0), rows = packed.size(0), words = packed.size(1), groups = scales.size(1);
    TORCH_CHECK(x.size(1) == 8 * words, "x has ", x.size(1), " columns, packed has ", 8 * words);
    TORCH_CHECK(group_size > 0 && group_size % 8 == 0, "group_size is ", group_size, ", not a multiple of 8");
    TORCH_CHECK(scales.size(0) == rows && groups * group_size >= 8 * words,
                "scales is ", scales.sizes(), ": it needs a row for each row of packed, and a scale for each group");
    TORCH_CHECK(batch <= 65535 && rows <= INT_MAX / 2 && words <= INT_MAX / 64, "too large for this kernel's indices");
    x = x.contiguous();
    packed = packed.contiguous();
    scales = scales.contiguous();
    torch::Tensor y = torch::empty({batch, rows}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto data = [](const torch::Tensor& t) { return (__half*)t.data_ptr<at::Half>(); };
    const dim3 blocks((rows + THREADS - 1) / THREADS, batch);
    int4_matvec_kernel<<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(x), (const uint8_t*)packed.data_ptr<int>(), data(scales), data(y), rows, 8 * words, groups, group_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="int4_matvec_01_thread_a_row",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["int4_matvec_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model, with inputs on a GPU: x (N, columns) float16 -> (N, rows) float16."""

    def __init__(self, group_size):
        super().__init__()
        self.group_size = group_size

    def forward(self, x, packed, scales):
        return kernels.int4_matvec_forward(x, packed, scales, self.group_size)
